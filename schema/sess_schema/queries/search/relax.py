"""Suggestions for a query without hits: slightly wider searches that find something."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterator

import apsw

from sess_common.classes import dataclass, replace
from sess_schema.queries.search.engine import Search
from sess_schema.queries.search.language import And, Query
from sess_schema.queries.search.terms import Term

_MOST = 1000  # events compared per search
_LONG_ENOUGH = 3
_NEAR = 0.75
_MOST_WORDS = 4  # of a query, checked for similar spellings
_FEW = 8  # terms that are searched for inside every text
_SECONDS = 2.0  # after which no other search is tried


@dataclass(frozen=True, slots=True)
class Way:
    """A wider search, and how to type it."""

    why: str
    search: Search
    adds: tuple[str, ...] = ()  # options
    drops: tuple[str, ...] = ()  # options; "filters" for all of them


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A wider search and how many events it finds."""

    why: str
    words: str
    adds: tuple[str, ...]
    drops: tuple[str, ...]
    count: int
    counted: bool  # whether the count is exact


def wider(db: apsw.Connection, search: Search) -> Iterator[Relaxation]:
    """The wider searches that find something, the closest first, each as soon as it is counted."""
    began = time.monotonic()
    for way in _ways(db, search, search.results(db).query):
        if time.monotonic() - began > _SECONDS:
            break
        results = replace(way.search, limit=0, cursor=None).results(db)
        count = results.count(most=_MOST)
        if count:
            counted = not results.plan.scans or count < _MOST
            words = way.search.text
            yield Relaxation(way.why, words, way.adds, way.drops, count, counted)


def _ways(db: apsw.Connection, search: Search, query: Query) -> Iterator[Way]:
    terms = [leaf for leaf in query.wanted() if isinstance(leaf, Term)]
    if search.case:
        yield Way("ignoring case", replace(search, case=False), drops=("--case-sensitive",))
    if search.whole:
        yield Way("inside words", replace(search, whole=False), drops=("--whole-word",))
    if words := _unfiltered(search, db):
        wider = replace(search, filters=(), text=words)
        yield Way("without the filters", wider, drops=("filters", "--error"))
    if search.mode != "words":
        return
    for term in terms[:_MOST_WORDS]:
        for word in near(db, term):
            if (text := _replaced(search.text, term.text, word)) != search.text:
                yield Way(f'"{word}" instead of "{term.text}"', replace(search, text=text))
    text = search.text
    begun = [t.text for t in terms if t.plain and not t.prefix and len(t.text) >= _LONG_ENOUGH]
    for word in begun:
        text = _replaced(text, word, f"{word}*")
    if text != search.text:
        starting = " and ".join(f'"{word}"' for word in dict.fromkeys(begun))
        yield Way(f"words starting with {starting}", replace(search, text=text))
    if len(terms) <= _FEW and not search.whole:
        yield Way("inside words", replace(search, mode="substring"), adds=("--substring",))
    if 1 < len(terms) <= _FEW and query.tree == And((*terms,)):
        either = " OR ".join(map(_typed, terms))
        yield Way("any of the words", replace(search, text=either))


def _unfiltered(search: Search, db: apsw.Connection) -> str | None:
    """The words alone, if there are filters beside them."""
    words = search.text.strip()
    if search.mode in ("words", "substring"):
        words = search.without_filters(db)
    return words if search.filters or words != search.text.strip() else None


def near(db: apsw.Connection, term: Term) -> list[str]:
    """Words of the index that a misspelt word may stand for."""
    if not term.plain or len(term.tokens) != 1 or len(term.text) < _LONG_ENOUGH:
        return []
    word = term.tokens[0]
    known = db.execute("SELECT doc FROM event_words WHERE term = ?", (word,)).get
    if known:
        return []
    # Most typos keep the first letter, and the words are sorted.
    first, after = word[0], chr(ord(word[0]) + 1)
    candidates: dict[str, int] = dict(
        db.execute(
            "SELECT term, doc FROM event_words WHERE term >= ? AND term < ?"
            " AND length(term) BETWEEN ? AND ?",
            (first, after, len(word) - 2, len(word) + 2),
        )
    )
    close = difflib.get_close_matches(word, candidates, 5, _NEAR)
    return sorted(close, key=lambda o: (abs(len(o) - len(word)) > 1, -candidates[o]))[:2]


def _replaced(text: str, word: str, other: str) -> str:
    """A text with one word replaced, in brackets or not."""
    return re.sub(rf"(?<![^\s(]){re.escape(word)}(?![^\s).,;:!?])", lambda _: other, text)


def _typed(term: Term) -> str:
    return (f'"{term.text}"' if " " in term.text else term.text) + "*" * term.prefix
