"""A search from its request to the exit code, and the short way to one that is only words."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sess_cli import fresh
from sess_cli.search import saved
from sess_cli.search.found import Wishes, write
from sess_schema.errors import Exit
from sess_schema.program import Ended, say
from sess_schema.queries.search import Search

if TYPE_CHECKING:
    import apsw


def perform(
    request: Search, wishes: Wishes, typed: list[str], *, sync: bool, save: str | None = None
) -> None:
    """Search, write what was found, and say what else might be when nothing was."""
    if save is not None:
        saved.check_name(save)
    with fresh.open_with_sessions(sync=sync) as db, db:
        found = write(db, request, wishes)
        if not found and not wishes.explain:
            _nothing(db, request, typed)
    if save is not None:
        saved.save(save, typed)
        say(f"saved as @{save}")
    saved.remember(typed)
    if not found and not wishes.explain:
        raise Ended(Exit.NOTHING_FOUND)


def for_words(words: list[str], *, sync: bool) -> None:
    """`sess search WORDS` without options."""
    request = Search(" ".join(words))
    request.check()
    perform(request, Wishes(), [*([] if sync else ["--no-sync"]), "--", *words], sync=sync)


def without(args: list[str], *options: str) -> list[str]:
    """A command line without some options and their values."""
    kept: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return [*kept, arg, *rest]
        if arg in options:
            next(rest, None)
        elif not arg.startswith(tuple(f"{option}=" for option in options)):
            kept.append(arg)
    return kept


def _nothing(db: apsw.Connection, request: Search, typed: list[str]) -> None:
    """Say what would have been found, on stderr."""
    import shlex  # noqa: PLC0415

    from sess_cli.render import amounts  # noqa: PLC0415
    from sess_schema.escape import safe  # noqa: PLC0415
    from sess_schema.program import say  # noqa: PLC0415
    from sess_schema.queries.fields import FIELDS  # noqa: PLC0415
    from sess_schema.queries.search.relax import relaxations  # noqa: PLC0415

    if request.cursor is not None:
        return
    if sys.stdout.isatty():
        say("nothing found")
    for note in request.results(db).query.notes:
        say(f"note: {safe(note)}")
    options = [option for option in typed[: typed.index("--")] if option != "--no-sync"]
    for one in relaxations(db, request):
        kept = [option for option in options if option not in one.drops]
        if "filters" in one.drops:
            kept = without(kept, *(f"--{field}" for field in FIELDS))
        number = amounts.plural(one.count, "event") + ("" if one.counted else " or more")
        command = shlex.join(["sess", "search", *one.adds, *kept, one.words])
        say(f"hint: {number} {safe(one.why)}: `{safe(command)}`")
