"""Runs a search and writes the hits: for people, for scripts, for agents with a token budget."""

from __future__ import annotations

import apsw

from sess_cli import fresh
from sess_cli.search import saved_searches
from sess_cli.terminal import Terminal, json_line, pager
from sess_common.classes import TYPE_CHECKING, dataclass
from sess_common.errors import Exit, SessError
from sess_common.program import Ended, say
from sess_schema import walks
from sess_schema.queries import sessions
from sess_schema.queries.search import EXCERPT_WIDTH, Results, Search

if TYPE_CHECKING:
    from typing import Any

    import apsw

    from sess_cli.terminal import Terminal


_MOST_UNREAD = 3


def perform(
    request: Search,
    options: OutputOptions,
    typed: list[str],
    *,
    sync: bool,
    save: str | None = None,
    no_pager: bool = False,
) -> None:
    """Search and write the hits; if there are none, suggest wider searches."""
    if save is not None:
        saved_searches.check_name(save)
    with (
        pager(wanted=options.for_people and not no_pager) as terminal,
        fresh.open_with_sessions(sync=sync) as db,
        db,
    ):
        found = write_hits(db, request, options, terminal) or _as_session(
            db, request, options, terminal
        )
        if not found and not options.explain:
            from sess_cli.search.hints import hint_wider_searches

            hint_wider_searches(db, request, typed)
        elif options.for_people and terminal.interactive:
            from sess_cli.search.hints import hint_inside_words

            hint_inside_words(db, request, typed, terminal)
        _note_unread(db, request)
    if save is not None:
        saved_searches.save(save, typed)
        say(f"saved as @{save}")
    saved_searches.remember(typed)
    if not found and not options.explain:
        raise Ended(Exit.NOTHING_FOUND)


def _note_unread(db: apsw.Connection, request: Search) -> None:
    """Say whose conversations may be missing, because their database could not be read."""
    asked = {one.value.casefold() for one in request.filters if one.field == "agent"}
    unread = [one for one in walks.skipped_databases(db) if not asked or one[0] in asked]
    for agent, path, reason in unread[:_MOST_UNREAD]:
        say(f'note: {agent}: "{path}" could not be read: {reason}')
    if len(unread) > _MOST_UNREAD:
        say(f"note: {len(unread) - _MOST_UNREAD:,} more databases; `sessiond status` lists them")


def _as_session(
    db: apsw.Connection, request: Search, options: OutputOptions, terminal: Terminal
) -> bool:
    """If no text has it, the query may be a session's ID: then its events are the hits."""
    if not any(character.isdigit() for character in request.text):
        return False
    from sess_cli.search import hints

    row = hints.named_session(db, request)
    if row is None:
        return False
    say(f"note: {request.text.strip()} is a session; `sess show` shows all of it")
    return write_hits(db, hints.events_of(request, row), options, terminal)


def for_words(options: list[str], words: list[str]) -> None:
    """`sess search WORDS` with no other options than --no-sync and --json."""
    request = Search(" ".join(words))
    request.check()
    output = OutputOptions(json="--json" in options)
    perform(request, output, [*options, "--", *words], sync="--no-sync" not in options)


_MOST_GROUPED = 1000  # hits held in memory to be grouped


@dataclass(slots=True)
class OutputOptions:
    """The output options."""

    json: bool = False
    fields: str | None = None
    count: bool = False
    ids: bool = False
    files: bool = False
    max_tokens: int | None = None
    explain: bool = False
    open: bool = False
    flat: bool = False
    paged: bool = False
    before: int = 0
    after: int = 0

    @property
    def for_people(self) -> bool:
        """Hits as text, and nothing else."""
        only = (self.json, self.fields, self.count, self.ids, self.files, self.max_tokens)
        return not any(only) and not (self.explain or self.open or self.paged)

    def check(self) -> None:
        chosen = [
            name
            for name, on in (
                ("--count", self.count),
                ("--ids", self.ids),
                ("--files-with-matches", self.files),
                ("--max-tokens", self.max_tokens is not None),
                ("--explain", self.explain),
                ("--fields", self.fields is not None),
                ("--open", self.open),
            )
            if on
        ]
        if self.paged and chosen and chosen[0] not in ("--ids", "--fields"):
            chosen.append("--cursor")
        if self.json and self.ids:
            chosen.append("--json")
        if len(chosen) > 1:
            raise SessError(f"{chosen[0]} and {chosen[1]} cannot be combined")
        if self.fields is not None:
            from sess_cli.search.output_json import chosen_fields

            chosen_fields(self.fields)


def write_hits(
    db: apsw.Connection, search: Search, options: OutputOptions, terminal: Terminal
) -> bool:
    """Write the hits; False if there are none."""
    results = search.results(db)
    if options.explain:
        return _explain(search, results)
    if options.count:
        return _count(results, options)
    if options.files:
        return _files(db, results, options)
    if options.max_tokens is not None:
        return _evidence(db, results, search, options)
    if options.open:
        return _open(db, results, utc=search.utc)
    if options.ids:
        found = _ids(db, results, search.limit)
    elif options.json or options.fields:
        found = _objects(db, results, options)
    else:
        found = _lines(db, results, search, options, terminal)
    if options.paged:
        _page(results, search, options, found)
    return found > 0


def _explain(search: Search, results: Results) -> bool:
    from sess_cli.search.output_text import query_outline

    terminal = Terminal()
    for line in query_outline(search, results):
        terminal.write(terminal.text(line))
    return True


def _open(db: apsw.Connection, results: Results, *, utc: bool) -> bool:
    from sess_cli.export.publishing import open_at

    for hit in results.ranked():
        open_at(db, hit.session, hit.event, utc=utc)
        return True
    return False


def _count(results: Results, options: OutputOptions) -> bool:
    number = results.count()
    if options.json:
        json_line({"count": number})
    else:
        Terminal().write(str(number))
    return number > 0


def _files(db: apsw.Connection, results: Results, options: OutputOptions) -> bool:
    terminal = Terminal()
    found = False
    for key in results.sessions():
        row = sessions.by_key(db, key)
        found = True
        if options.json:
            json_line({"session": row.session, "path": row.source, "gone": bool(row.source_gone)})
        else:
            terminal.write(terminal.line(row.source or row.session))
            terminal.stream.flush()
    return found


def _ids(db: apsw.Connection, results: Results, limit: int) -> int:
    from sess_schema.citations import Citations

    terminal = Terminal()
    names: dict[int, str] = {}
    cites = Citations(db)
    number = 0
    for number, ranked in enumerate(results.ranked(), 1):
        if ranked.session not in names:
            names[ranked.session] = sessions.by_key(db, ranked.session).session
        key = cites.key(ranked.event, ranked.session)
        terminal.write(terminal.line(f"{names[ranked.session]}#{key}"))
        terminal.stream.flush()
        if number == limit:
            break
    return number


def _evidence(
    db: apsw.Connection, results: Results, search: Search, options: OutputOptions
) -> bool:
    from sess_cli.search.output_json import packed_evidence

    terminal = Terminal()
    found = False
    for piece in packed_evidence(
        db, results, options.max_tokens or 0, utc=search.utc, as_json=options.json
    ):
        if options.json:
            json_line(piece.value)
        else:
            if found:
                terminal.write("")
            terminal.write(terminal.text(piece.text.rstrip("\n")))
            terminal.stream.flush()
        found = True
    return found


def _objects(db: apsw.Connection, results: Results, options: OutputOptions) -> int:
    from sess_cli.search.output_json import FIELDS, Objects, chosen_fields

    names = chosen_fields(options.fields) if options.fields is not None else FIELDS
    objects = Objects(db, results, names, options.before, options.after)
    found = 0
    for hit in results.hits():
        found += 1
        json_line(objects.of(hit))
    return found


def _lines(
    db: apsw.Connection,
    results: Results,
    search: Search,
    options: OutputOptions,
    terminal: Terminal,
) -> int:
    from sess_cli.search.output_text import Around, ResultView
    from sess_schema.queries.search.groups import grouped

    room = (terminal.width or EXCERPT_WIDTH) - 4
    lines = max(2, search.width // room)
    around = Around(options.before, options.after, lines)
    view = ResultView(terminal, db, results, around, utc=search.utc)
    found = 0

    def put(drawn: Any) -> None:
        for line in drawn:
            terminal.write(line)
        terminal.stream.flush()

    if options.flat or options.paged or not 0 < search.limit <= _MOST_GROUPED:
        for hit in results.hits():
            found += 1
            put(view.flat(hit))
        return found
    for group in grouped(db, results, search.limit, search.width):
        found += len(group.hits)
        put(view.group(group))
    return found


def _page(results: Results, search: Search, options: OutputOptions, found: int) -> None:
    """Print the cursor of the next page, which may turn out to be empty."""
    more = results.cursor() if search.limit and found == search.limit else None
    if options.json or options.fields:
        json_line({"cursor": more})
    elif more:
        say(f"next page: --cursor {more}")
