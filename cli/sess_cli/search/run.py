"""Runs a search and writes the hits: for people, for scripts, for agents with a token budget."""

from __future__ import annotations

from itertools import islice

from sess_cli import fresh
from sess_cli.search import saved_searches
from sess_cli.terminal import json_line, pager
from sess_common.classes import TYPE_CHECKING, dataclass, replace
from sess_common.errors import Exit, SessError
from sess_common.program import Ended, say
from sess_schema.queries import sessions, sources
from sess_schema.queries.search import COMMON, EXCERPT_WIDTH, Search

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from sess_cli.terminal import Terminal
    from sess_schema.queries.recall.loose import Loose

_MOST_UNREAD = 3
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

    @property
    def whole_list(self) -> bool:
        """Whether hits are counted, listed or paged: then none may lack a word."""
        return self.count or self.ids or self.files or self.explain or self.paged

    def check(self) -> None:
        forms = {
            "--count": self.count,
            "--ids": self.ids,
            "--files-with-matches": self.files,
            "--max-tokens": self.max_tokens is not None,
            "--explain": self.explain,
            "--fields": self.fields is not None,
            "--open": self.open,
        }
        chosen = [name for name, on in forms.items() if on]
        if self.paged and chosen and chosen[0] not in ("--ids", "--fields"):
            chosen.append("--cursor")
        if self.json and self.ids:
            chosen.append("--json")
        if len(chosen) > 1:
            raise SessError(f"{chosen[0]} and {chosen[1]} cannot be combined")
        if self.fields is not None:
            from sess_cli.search.output_json import chosen_fields

            chosen_fields(self.fields)


def loosely(db: apsw.Connection, search: Search) -> Loose | None:
    """What a search goes on with where few events have all words."""
    from sess_schema.queries.recall.loose import loosely  # most searches find enough

    return loosely(db, search)


def for_words(options: list[str], words: list[str]) -> None:
    """`sess search WORDS` with no other options than --no-sync, --wait and --json."""
    fresh.Answer.whole = "--wait" in options
    request = Search(" ".join(words))
    request.further = loosely
    request.check()
    output = OutputOptions(json="--json" in options)
    perform(request, output, [*options, "--", *words], sync="--no-sync" not in options)


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
        output = _Output(db, request, options, terminal)
        found = output.write()
        found = found or _write_session(db, request, options, terminal)
        if not found and not options.explain:
            from sess_cli.search.hints import hint_wider_searches

            hint_wider_searches(db, request, typed)
        elif output.loosely:
            from sess_cli.search.hints import note_taken_loosely

            note_taken_loosely(output.loosely)
        elif output.partly:
            say(f"note: more than {COMMON:,} events match: the newest were ranked first")
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


def _write_session(
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
    return _Output(db, hints.events_of(request, row), options, terminal).write()


def _note_unread(db: apsw.Connection, request: Search) -> None:
    """Say whose conversations may be missing, because their database could not be read."""
    agents = {filter_.value.casefold() for filter_ in request.filters if filter_.field == "agent"}
    unread = [one for one in sources.skipped_databases(db) if not agents or one[0] in agents]
    for agent, path, reason in unread[:_MOST_UNREAD]:
        say(f'note: {agent}: "{path}" could not be read: {reason}')
    if len(unread) > _MOST_UNREAD:
        say(f"note: {len(unread) - _MOST_UNREAD:,} more databases; `sessiond status` lists them")


class _Output:
    """Writes the hits of a search in the form that was asked for."""

    def __init__(
        self, db: apsw.Connection, request: Search, options: OutputOptions, terminal: Terminal
    ) -> None:
        self._db, self._request, self._options = db, request, options
        self._terminal = terminal
        self._further: Loose | None = None
        if request.further is not None:
            request = replace(request, further=self._loosely)
        self._results = request.results(db)

    def write(self) -> bool:
        """False if there are none."""
        options = self._options
        if options.explain:
            return self._explain()
        if options.count:
            return self._count()
        if options.files:
            return self._files()
        if options.max_tokens is not None:
            return self._evidence(options.max_tokens)
        if options.open:
            return self._open()
        if options.ids:
            hits = self._ids()
        elif options.json or options.fields:
            hits = self._objects()
        else:
            hits = self._lines()
        if options.paged:
            self._page(hits)
        return hits > 0

    def _loosely(self, db: apsw.Connection, search: Search) -> Loose | None:
        self._further = loosely(db, search)
        return self._further

    @property
    def loosely(self) -> Loose | None:
        """The words taken loosely, if any hit is shown that has not all of them."""
        return self._further if self._results.further else None

    @property
    def partly(self) -> bool:
        """Whether older matches may be better than some that are shown."""
        return self._results.partly

    def _put(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._terminal.write(line)
        self._terminal.stream.flush()

    def _explain(self) -> bool:
        from sess_cli.search.output_text import query_outline

        self._put(map(self._terminal.text, query_outline(self._request, self._results)))
        return True

    def _open(self) -> bool:
        from sess_cli.export.html.page import open_at

        for hit in self._results.ranked():
            open_at(self._db, hit.session, hit.event, utc=self._request.utc)
            return True
        return False

    def _count(self) -> bool:
        number = self._results.count()
        if self._options.json:
            json_line({"count": number})
        else:
            self._terminal.write(str(number))
        return number > 0

    def _files(self) -> bool:
        row = None
        for key in islice(self._results.sessions(), self._request.limit or None):
            row = sessions.by_key(self._db, key)
            if self._options.json:
                gone = bool(row.source_gone)
                json_line({"session": row.session, "path": row.source, "gone": gone})
            else:
                self._put([self._terminal.line(row.source or row.session)])
        return row is not None

    def _ids(self) -> int:
        from sess_schema.citations import Citations

        names: dict[int, str] = {}
        cites = Citations(self._db)
        number = 0
        for number, ranked in enumerate(self._results.ranked(), 1):
            if ranked.session not in names:
                names[ranked.session] = sessions.by_key(self._db, ranked.session).session
            key = cites.key(ranked.event, ranked.session)
            self._put([self._terminal.line(f"{names[ranked.session]}#{key}")])
            if number == self._request.limit:
                break
        return number

    def _evidence(self, budget: int) -> bool:
        from sess_cli.search.output_json import packed_evidence

        pieces = packed_evidence(
            self._db, self._results, budget, utc=self._request.utc, as_json=self._options.json
        )
        number = 0
        for number, piece in enumerate(pieces, 1):
            if self._options.json:
                json_line(piece.value)
            else:
                text = self._terminal.text(piece.text.rstrip("\n"))
                self._put([text] if number == 1 else ["", text])
        return number > 0

    def _objects(self) -> int:
        from sess_cli.search.output_json import FIELDS, Objects, chosen_fields

        options = self._options
        names = chosen_fields(options.fields) if options.fields is not None else FIELDS
        objects = Objects(self._db, self._results, names, options.before, options.after)
        number = 0
        for hit in self._results.hits():
            number += 1
            json_line(objects.of(hit))
        return number

    def _lines(self) -> int:
        from sess_cli.search.output_text import Around, ResultView
        from sess_schema.queries.search.groups import grouped

        db, results, request, options = self._db, self._results, self._request, self._options
        room = (self._terminal.width or EXCERPT_WIDTH) - 4
        around = Around(options.before, options.after, max(2, request.width // room))
        view = ResultView(self._terminal, db, results, around, utc=request.utc)
        number = 0
        if options.flat or options.paged or not 0 < request.limit <= _MOST_GROUPED:
            for hit in results.hits():
                number += 1
                self._put(view.flat(hit))
            return number
        for group in grouped(db, results, request.limit, request.width):
            number += len(group.hits)
            self._put(view.group(group))
        return number

    def _page(self, hits: int) -> None:
        """Print the cursor of the next page, which may turn out to be empty."""
        limit = self._request.limit
        more = self._results.cursor() if limit and hits == limit else None
        if self._options.json or self._options.fields:
            json_line({"cursor": more})
        elif more:
            say(f"next page: --cursor {more}")
