"""What a search may have meant: wider searches, parts of longer words, a session by its ID."""

from __future__ import annotations

import re
import shlex
import time

import apsw

from sess_cli.render import amounts
from sess_cli.search import saved_searches
from sess_common import times
from sess_common.classes import TYPE_CHECKING, replace
from sess_common.errors import SessError
from sess_common.escape import safe
from sess_common.program import say
from sess_schema.queries import known, sessions
from sess_schema.queries.fields import FIELDS
from sess_schema.queries.search import Filter, Search
from sess_schema.queries.search.relax import absent, wider
from sess_schema.queries.search.terms import Term

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sess_cli.terminal import Terminal
    from sess_schema.queries.recall.loose import Loose
    from sess_schema.queries.search.language import Query
    from sess_schema.queries.sessions import SessionRow

_ID = re.compile(r"(?=.*\d)[\w./#-]{6,200}")
_FEW = 20  # with more hits, nobody misses those inside words
_SECONDS = 0.3  # to look for them
_NAMED = 3  # words that no event has
_LONGEST = 60  # characters of one
_STEPS = 20_000  # of SQLite, between two looks at the clock


def hint_wider_searches(db: apsw.Connection, request: Search, typed: list[str]) -> None:
    """Print what was not found, and what wider searches would find, on stderr."""
    if request.cursor is not None:
        return
    query = request.results(db).query
    impossible = [*_impossible(db, request, query)]
    for problem in impossible:
        say(f"sess: {safe(problem.message)}")
        say(f"hint: {safe(problem.hint or '')}")
    if not impossible:
        say(f"nothing found{safe(_not_found(db, request, query))}")
    for note in query.notes:
        say(f"note: {safe(note)}")
    options = _options(typed)
    for relaxation in wider(db, request):
        kept = [option for option in options if option not in relaxation.drops]
        if "filters" in relaxation.drops:
            kept = saved_searches.without(kept, *(f"--{field}" for field in FIELDS))
        number = amounts.plural(relaxation.count, "event") + (
            "" if relaxation.counted else " or more"
        )
        match = "matches" if relaxation.count == 1 and relaxation.counted else "match"
        command = shlex.join(["sess", "search", *relaxation.adds, *kept, relaxation.words])
        say(f"hint: {number} {match} {safe(relaxation.why)}: `{safe(command)}`")


def note_taken_loosely(loose: Loose) -> None:
    """Say that hits need not have all words, which words were left out, and how many match."""
    unknown = [word.text for word in loose.words if not word.terms]
    more = [
        f"{what}: {', '.join(map(_short, words))}"
        for what, words in (
            ("in none", unknown),
            ("too common", [word.text for word in loose.left_out]),
        )
        if words
    ]
    number = amounts.plural(loose.matched, "event")
    verb = "has" if loose.matched == 1 else "have"
    say(
        f"note: few events have all words, so the rest is by relevance: {number} {verb} any of them"
        + safe(f" ({'; '.join(more)})" if more else "")
        + "; --all-words asks for all"
    )


def _not_found(db: apsw.Connection, request: Search, query: Query) -> str:
    terms = [leaf for leaf in query.wanted() if isinstance(leaf, Term)]
    if request.mode != "words" or not terms:
        return ""
    narrowed = request.filters or request.without_filters(db) != request.text.strip()
    event = "event that passes the filters" if narrowed else "event"
    if len(terms) == 1:
        return f': no {event} has "{_short(terms[0].text)}"'
    if query.phrase() is None:
        return ""
    unknown = absent(db, query)
    quoted = ", ".join(f'"{_short(word)}"' for word in unknown[:_NAMED])
    rest = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    return f": no {event} has all words" + (f"; none at all has {quoted}{rest}" if unknown else "")


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"


def _impossible(db: apsw.Connection, request: Search, query: Query) -> Iterator[SessError]:
    """What filters ask for that no event can have: unknown names, an end before its beginning."""
    moments: dict[str, int] = {}
    for asked in query.filters():
        try:
            if asked.field in known.NAMES:
                known.check_name(db, asked.field, asked.value)
            elif asked.field in ("since", "until"):
                of = times.since if asked.field == "since" else times.until
                moments[asked.field] = of(asked.value, utc=request.utc, now=request.now)
                known.check_times(moments.get("since"), moments.get("until"))
        except SessError as problem:
            yield problem


def hint_inside_words(
    db: apsw.Connection, request: Search, typed: list[str], terminal: Terminal
) -> None:
    """Say how many more events have the words inside longer ones."""
    more, all_read = _inside_words(db, request)
    if more:
        number = amounts.plural(more, "more event") + ("" if all_read else " or more")
        command = shlex.join(["sess", "search", "--substring", *_options(typed), request.text])
        verb = "has" if more == 1 and all_read else "have"
        hint = f"hint: {number} {verb} it inside longer words: `{safe(command)}`"
        terminal.write("")
        terminal.write(terminal.style(hint, "dim"))


def _options(typed: list[str]) -> list[str]:
    left_out = ("--no-sync", "--wait", "--all-words")
    return [option for option in typed[: typed.index("--")] if option not in left_out]


def named_session(db: apsw.Connection, request: Search) -> SessionRow | None:
    """The session whose ID, or the beginning of it, is the whole query."""
    word = request.text.strip()
    if request.filters or request.cursor or request.mode != "words" or not _ID.fullmatch(word):
        return None
    try:
        return sessions.resolve(db, word.partition("#")[0])
    except SessError:
        return None


def events_of(request: Search, row: SessionRow) -> Search:
    return replace(request, text="", filters=(Filter("session", row.session),), sort="oldest")


def _inside_words(db: apsw.Connection, request: Search) -> tuple[int, bool]:
    """How many more events have the words inside longer ones, and whether all were looked at."""
    if request.mode != "words" or request.whole or request.cursor is not None:
        return 0, True
    results = request.results(db)
    terms = [leaf for leaf in results.query.wanted() if isinstance(leaf, Term)]
    if not any(term.plain for term in terms) or any(term.prefix for term in terms):
        return 0, True
    if results.count(most=_FEW + 1) > _FEW:
        return 0, True
    hits = {hit.event for hit in results.ranked()}
    more = 0
    until = time.monotonic() + _SECONDS
    db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        wider = replace(request, mode="substring", sort="newest", limit=0)
        for hit in wider.results(db).ranked():
            more += hit.event not in hits
            if time.monotonic() > until:
                return more, False
    except apsw.InterruptError:
        return more, False
    finally:
        db.set_progress_handler(None)
    return more, True
