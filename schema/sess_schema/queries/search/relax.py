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
_RAREST = 6  # words of a longer query, any of which would do
_SECONDS = 2.0  # after which no other search is tried
# What English sentences and questions are built with, and what says nothing of their subject.
_FUNCTION_WORDS = """\
a about after again all also am an and any anyone are aren as at be because been before being
both but by can cannot could couldn did didn do does doesn doing don done each either else ever
every few for from get gets getting give go goes got had has hasn have haven having he her here
him his how however i if in instead into is isn it its itself just kind let lets ll made make
makes many may me might more most much must my need needs neither no nor not now of off on once
one only onto or other our out over own per please put rather re really same shall she should
shouldn so some someone something sort still such than that the their them then there these they
thing things this those though through to too under until up upon us use used using ve very via
was wasn way we went were weren what when where whether which while who whom whose why will with
within without won would wouldn yes yet you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


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
    spelt = search.text  # every unknown word replaced by the nearest known one
    slips = []
    for term in terms[:_MOST_WORDS]:
        known = near(db, term)
        for word in known:
            if (text := _replaced(search.text, term.text, word)) != search.text:
                yield Way(f'"{word}" instead of "{term.text}"', replace(search, text=text))
        if known:
            spelt = _replaced(spelt, term.text, known[0])
            slips.append(f'"{known[0]}" instead of "{term.text}"')
    if len(slips) > 1:
        yield Way(" and ".join(slips), replace(search, text=spelt))
    content = [term for term in terms if term.text.lower() not in FUNCTION_WORDS]
    text = search.text
    begun = [t.text for t in content if t.plain and not t.prefix and len(t.text) >= _LONG_ENOUGH]
    for word in begun if len(terms) <= _FEW else ():
        text = _replaced(text, word, f"{word}*")
    if text != search.text:
        starting = " and ".join(f'"{word}"' for word in dict.fromkeys(begun))
        yield Way(f"words starting with {starting}", replace(search, text=text))
    if len(terms) <= _FEW and not search.whole:
        yield Way("inside words", replace(search, mode="substring"), adds=("--substring",))
    if len(terms) > _FEW:
        rarest = _rarest(db, content) if words is None or words == text.strip() else []
        if rarest:
            yield Way("any of the rarest words", replace(search, text=" OR ".join(rarest)))
    elif len(terms) > 1 and query.tree == And((*terms,)):
        either = " OR ".join(map(_typed, content or terms))
        why = "without common words" if len(content) == 1 else "any of the words"
        yield Way(why, replace(search, text=either))


def _unfiltered(search: Search, db: apsw.Connection) -> str | None:
    """The words alone, if there are filters beside them."""
    words = search.text.strip()
    if search.mode in ("words", "substring"):
        words = search.without_filters(db)
    return words if search.filters or words != search.text.strip() else None


def _rarest(db: apsw.Connection, terms: list[Term]) -> list[str]:
    """Of the words that some event has, those that the fewest have, as they were typed."""
    events = {
        term.text: events
        for term in terms
        if term.plain and len(term.tokens) == 1 and (events := _events_with(db, term.tokens[0]))
    }
    rarest = sorted(events, key=events.__getitem__)[:_RAREST]
    return [word for word in events if word in rarest]


def absent(db: apsw.Connection, query: Query) -> list[str]:
    """The words of a query that no event has; function words only if there are no others."""
    terms = [leaf for leaf in query.wanted() if isinstance(leaf, Term) and not leaf.prefix]
    single = {term.text: term.tokens[0] for term in terms if term.plain and len(term.tokens) == 1}
    unknown = [text for text, token in single.items() if not _events_with(db, token)]
    return [text for text in unknown if text.lower() not in FUNCTION_WORDS] or unknown


def _events_with(db: apsw.Connection, token: str) -> int:
    return db.execute("SELECT doc FROM event_words WHERE term = ?", (token,)).get or 0


def near(db: apsw.Connection, term: Term) -> list[str]:
    """Words of the index that a misspelt word may stand for."""
    if not term.plain or len(term.tokens) != 1 or len(term.text) < _LONG_ENOUGH:
        return []
    word = term.tokens[0]
    if _events_with(db, word):
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
