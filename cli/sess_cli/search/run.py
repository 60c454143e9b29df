"""Runs a search, and the fast path for one of words only."""

from __future__ import annotations

from sess_cli import fresh
from sess_cli.paging import pager
from sess_cli.search import saved_searches
from sess_cli.search.output import OutputOptions, write
from sess_common.classes import TYPE_CHECKING
from sess_common.errors import Exit
from sess_common.program import Ended, say
from sess_schema import skipped
from sess_schema.queries.search import Search

if TYPE_CHECKING:
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
        found = write(db, request, options, terminal) or _as_session(db, request, options, terminal)
        if not found and not options.explain:
            from sess_cli.search.nothing_found import hint

            hint(db, request, typed)
        elif options.for_people and terminal.interactive:
            from sess_cli.search.nothing_found import hint_inside_words

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
    unread = [one for one in skipped.databases(db) if not asked or one[0] in asked]
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
    from sess_cli.search import besides

    row = besides.named_session(db, request)
    if row is None:
        return False
    say(f"note: {request.text.strip()} is a session; `sess show` shows all of it")
    return write(db, besides.events_of(request, row), options, terminal)


def for_words(options: list[str], words: list[str]) -> None:
    """`sess search WORDS` with no other options than --no-sync and --json."""
    request = Search(" ".join(words))
    request.check()
    output = OutputOptions(json="--json" in options)
    perform(request, output, [*options, "--", *words], sync="--no-sync" not in options)
