"""Runs a search, and the fast path for one of words only."""

from __future__ import annotations

from sess_cli import fresh
from sess_cli.search import saved_searches
from sess_cli.search.output import OutputOptions, write
from sess_schema.errors import Exit
from sess_schema.program import Ended, say
from sess_schema.queries.search import Search


def perform(
    request: Search,
    options: OutputOptions,
    typed: list[str],
    *,
    sync: bool,
    save: str | None = None,
) -> None:
    """Search and write the hits; if there are none, suggest wider searches."""
    if save is not None:
        saved_searches.check_name(save)
    with fresh.open_with_sessions(sync=sync) as db, db:
        found = write(db, request, options)
        if not found and not options.explain:
            from sess_cli.search.nothing_found import hint  # noqa: PLC0415

            hint(db, request, typed)
    if save is not None:
        saved_searches.save(save, typed)
        say(f"saved as @{save}")
    saved_searches.remember(typed)
    if not found and not options.explain:
        raise Ended(Exit.NOTHING_FOUND)


def for_words(words: list[str], *, sync: bool) -> None:
    """`sess search WORDS` without options."""
    request = Search(" ".join(words))
    request.check()
    perform(request, OutputOptions(), [*([] if sync else ["--no-sync"]), "--", *words], sync=sync)
