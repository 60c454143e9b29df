"""What would have been found: a query without hits, made a little wider in several ways."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import apsw

from sess_schema.queries.search.engine import Search
from sess_schema.queries.search.terms import Leaf, Term

MOST = 1000  # counted no further
_LONG_ENOUGH = 3
_NEAR = 0.75
_MOST_WORDS = 4  # of a query, to look for near spellings of


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A wider search and how many events it finds."""

    why: str
    words: str  # as they would be typed
    option: str  # and an option to go with them
    count: int


def relaxations(db: apsw.Connection, search: Search) -> list[Relaxation]:
    """The ways that find something, the closest first."""
    results = search.results(db)
    found: list[Relaxation] = []
    for why, wider, option in _wider(db, search, results.query.wanted()):
        count = replace(wider, limit=0, cursor=None).results(db).count(most=MOST)
        if count:
            found.append(Relaxation(why, wider.text, option, count))
    return found


def _wider(
    db: apsw.Connection, search: Search, leaves: list[Leaf]
) -> Iterator[tuple[str, Search, str]]:
    terms = [leaf for leaf in leaves if isinstance(leaf, Term)]
    if search.case:
        yield "in any case", replace(search, case=False), ""
    if search.whole:
        yield "inside words", replace(search, whole=False), ""
    if search.filters and search.text.strip():
        yield "without the filters", replace(search, filters=()), ""
    if search.mode != "words":
        return
    for term in terms[:_MOST_WORDS]:
        for word in near(db, term):
            yield f'"{word}" instead of "{term.text}"', _with(search, term.text, word), ""
    beginnings = [t for t in terms if t.plain and not t.prefix and len(t.text) >= _LONG_ENOUGH]
    if beginnings:
        text = search.text
        for term in beginnings:
            text = _replaced(text, term.text, f"{term.text}*")
        if text != search.text:
            yield "words that begin so", replace(search, text=text), ""
    yield "inside words", replace(search, mode="substring"), "--substring"
    if len(terms) > 1:
        either = " OR ".join(_typed(term) for term in terms)
        yield "any of the words", replace(search, text=either), ""


def near(db: apsw.Connection, term: Term) -> list[str]:
    """Words of the index that a word may have been meant for."""
    if not term.plain or len(term.tokens) != 1 or len(term.text) < _LONG_ENOUGH:
        return []
    word = term.tokens[0]
    known = db.execute("SELECT doc FROM event_words WHERE term = ?", (word,)).get
    if known:
        return []
    # Nearly all slips keep the first letter, and the words are in order.
    first, after = word[0], chr(ord(word[0]) + 1)
    candidates: dict[str, int] = dict(
        db.execute(
            "SELECT term, doc FROM event_words WHERE term >= ? AND term < ?"
            " AND length(term) BETWEEN ? AND ?",
            (first, after, len(word) - 2, len(word) + 2),
        )
    )
    close = difflib.get_close_matches(word, candidates, 5, _NEAR)
    return sorted(close, key=lambda other: -candidates[other])[:2]


def _with(search: Search, word: str, other: str) -> Search:
    return replace(search, text=_replaced(search.text, word, other))


def _replaced(text: str, word: str, other: str) -> str:
    return " ".join(other if part == word else part for part in text.split())


def _typed(term: Term) -> str:
    return f'"{term.text}"' if " " in term.text else term.text
