"""What a search may have meant besides its hits: a session by its ID, and parts of longer words."""

from __future__ import annotations

import re
import time

import apsw

from sess_common.classes import TYPE_CHECKING, replace
from sess_common.errors import SessError
from sess_schema.queries import sessions
from sess_schema.queries.search import Filter, Search
from sess_schema.queries.search.terms import Term

if TYPE_CHECKING:
    from sess_schema.queries.sessions import SessionRow

_ID = re.compile(r"(?=.*\d)[\w./#-]{6,200}")
_FEW = 20  # with more hits, nobody misses those inside words
_SECONDS = 0.3  # to look for them
_STEPS = 20_000  # of SQLite, between two looks at the clock


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


def inside_words(db: apsw.Connection, request: Search) -> tuple[int, bool]:
    """How many more events have the words inside longer ones, and whether all were looked at."""
    if request.mode != "words" or request.whole or request.cursor is not None:
        return 0, True
    results = request.results(db)
    terms = [leaf for leaf in results.query.wanted() if isinstance(leaf, Term)]
    if not any(term.plain for term in terms) or any(term.prefix for term in terms):
        return 0, True
    if results.count(most=_FEW + 1) > _FEW:
        return 0, True
    known = {one.event for one in results.ranked()}
    more = 0
    until = time.monotonic() + _SECONDS
    db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        for one in replace(request, mode="substring", sort="newest", limit=0).results(db).ranked():
            more += one.event not in known
            if time.monotonic() > until:
                return more, False
    except apsw.InterruptError:
        return more, False
    finally:
        db.set_progress_handler(None)
    return more, True
