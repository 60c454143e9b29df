"""Hints for a search with few hits or none: what wider searches would find."""

from __future__ import annotations

import shlex
import sys

from sess_cli.render import amounts
from sess_cli.search import saved_searches
from sess_common.classes import TYPE_CHECKING
from sess_common.escape import safe
from sess_common.program import say
from sess_schema.queries.filters import FIELDS
from sess_schema.queries.search.relax import relaxations

if TYPE_CHECKING:
    import apsw

    from sess_cli.terminal import Terminal
    from sess_schema.queries.search import Search


def hint(db: apsw.Connection, request: Search, typed: list[str]) -> None:
    """Print what wider searches would find, on stderr."""
    if request.cursor is not None:
        return
    if sys.stdout.isatty():
        say("nothing found")
    for note in request.results(db).query.notes:
        say(f"note: {safe(note)}")
    options = _options(typed)
    for one in relaxations(db, request):
        kept = [option for option in options if option not in one.drops]
        if "filters" in one.drops:
            kept = saved_searches.without(kept, *(f"--{field}" for field in FIELDS))
        number = amounts.plural(one.count, "event") + ("" if one.counted else " or more")
        match = "matches" if one.count == 1 and one.counted else "match"
        command = shlex.join(["sess", "search", *one.adds, *kept, one.words])
        say(f"hint: {number} {match} {safe(one.why)}: `{safe(command)}`")


def hint_inside_words(
    db: apsw.Connection, request: Search, typed: list[str], terminal: Terminal
) -> None:
    """Say how many more events have the words inside longer ones."""
    from sess_cli.search.besides import inside_words  # on terminals only

    more, all_read = inside_words(db, request)
    if more:
        number = amounts.plural(more, "more event") + ("" if all_read else " or more")
        command = shlex.join(["sess", "search", "--substring", *_options(typed), request.text])
        verb = "has" if more == 1 and all_read else "have"
        hint = f"hint: {number} {verb} it inside longer words: `{safe(command)}`"
        terminal.write("")
        terminal.write(terminal.style(hint, "dim"))


def _options(typed: list[str]) -> list[str]:
    return [option for option in typed[: typed.index("--")] if option != "--no-sync"]
