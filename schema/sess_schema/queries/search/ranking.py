"""Ranks matches.

bm25 with weights per column; prompts, answers, titles and recent events score higher. A word that
is nearly everywhere carries little information, and ranking all its matches would be slow: events
are ranked in pools, the newest first. The first pool also has older prompts and answers, and the
best of all matches, however old, unless there are very many.
"""

from __future__ import annotations

from functools import cached_property
from math import log
from weakref import WeakSet

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass, replace
from sess_common.times import DAY
from sess_schema.ids import EventId, SessionId
from sess_schema.queries.fields import Condition, Range
from sess_schema.queries.search.newest import Newest, Position, after_row, among, both
from sess_schema.queries.search.plan import Plan, matching

if TYPE_CHECKING:
    from typing import Any

# text, input, output, marks: what people and models said weighs more than what a tool printed.
_WEIGHTS = "10.0, 5.0, 1.0, 3.0"
POOL = 1100
LATER_POOL = 20_000  # anyone who pages this far wants everything
_SAID = 300
_BEST = 100
COMMON = 10_000  # matches; of more, the best are not looked for among all
# A word is rarer in one column than in all of them, so it scores higher there.
_SAID_SCALE = 0.6
_TYPE = (
    "CASE e.type WHEN 'user' THEN iif(e.label IS 'command', 1.0, 1.5) WHEN 'summary' THEN 1.5"
    " WHEN 'assistant' THEN 1.1 WHEN 'tool_use' THEN 1.0 WHEN 'thinking' THEN 0.8 ELSE 0.6 END"
)
_HALF_LIFE = 14 * DAY
_FRESH = f"(1 + 0.6 * pow(0.5, min(max(? - coalesce(e.ts, 0), 0) / {_HALF_LIFE}.0, 50)))"
# Type and time must decide even for a word that is everywhere (whose relevance is 0).
_SCORE = f"(0.5 + ? * relevance(event_index, ?, {_WEIGHTS})) * {_TYPE} * {_FRESH}"

COUNTED = 1000  # events with a phrase
_K1, _B = 1.2, 0.75  # the constants of bm25
_LEAST = 1e-6  # for a phrase in more than half of all events
_registered = WeakSet[apsw.Connection]()

# Event, time, score (higher is better), session.
Row = tuple["EventId", int | None, float, "SessionId"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """An event and its score."""

    event: EventId
    ts: int | None
    session: SessionId
    score: float = 0.0
    exact: bool = True  # whether it has all words


@dataclass(frozen=True, slots=True)
class Pool:
    """The matches of a period, the best first."""

    rows: list[Row]
    bottom: Position | None  # all matches before it are here; None: there are no others


@dataclass(frozen=True)
class Ranker:
    """Ranks the matches of a plan, up to event id `top`."""

    db: apsw.Connection
    plan: Plan
    base: Condition
    now: int
    top: int

    def pool(self, most: int, before: Position | None = None) -> Pool:
        """The newest matches before a position, the best first."""
        return self._ranked(self.plan, 1.0, most, before)

    def said(self, before: Position) -> Pool:
        """The newest prompts and answers, the best first."""
        match = f"({{text}} : {self.plan.match})"
        if self.plan.excludes:  # the excluded word may be in another column
            match += f" AND {self.plan.match}"
        return self._ranked(replace(self.plan, match=match), _SAID_SCALE, _SAID, before)

    def best(self, before: Position) -> list[Row]:
        """The best matches before a position, the best first; none of very many matches."""
        if self.common:
            return []
        best: list[int] = [
            event
            for (event,) in self.db.execute(
                "SELECT rowid FROM event_index WHERE event_index MATCH ? AND rowid <= ?"
                f" ORDER BY bm25(event_index, {_WEIGHTS}) LIMIT {_BEST}",
                (self.plan.match, self.top),
            )
        ]
        if not best:
            return []
        register_relevance(self.db)
        plan = replace(self.plan, ranges=(Range(str(min(best)), str(max(best))),))
        base = both(self.base, among("+event_index.rowid", best))
        if older := after_row(before, "newest"):
            base = both(base, older)
        sql, values = matching(plan, base, plan.match, f"{_SCORE}, e.session_id")
        rows = self.db.execute(sql, (1.0, self.top, self.now, *values))
        return sorted(rows, key=_best, reverse=True)

    @cached_property
    def common(self) -> bool:
        """Whether there are so many matches that only a part of them is ranked first."""
        counted = self.db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM event_index WHERE event_index MATCH ?"
            f" LIMIT {COMMON + 1})",
            (self.plan.match,),
        ).get
        return int(counted or 0) > COMMON

    def _ranked(self, plan: Plan, scale: float, most: int, before: Position | None) -> Pool:
        plan = replace(plan, ranges=(*plan.ranges, Range("0", str(self.top))))
        columns = f"{_SCORE}, e.session_id"
        register_relevance(self.db)
        matches = Newest(self.db, plan, self.base, columns, (scale, self.top, self.now))
        rows, bottom = matches.rows(most, before)
        return Pool(sorted(rows, key=_best, reverse=True), bottom)


def _best(row: Row) -> tuple[float, bool, int, int]:
    event, ts, score, _ = row
    return score, ts is not None, ts or 0, event


# -- how well a text matches, as an SQL function


class _Enough(Exception):
    """Enough events of a phrase were counted."""


def register_relevance(db: apsw.Connection) -> None:
    """Make it available as `relevance(event_index, top, WEIGHT...)`; higher is better.

    `top` is the largest number of an event. FTS5's own bm25 counts every event with a phrase to
    know how rare it is, which for common phrases of a large index takes longer than the search.
    This one counts the first of them, and estimates the rest from how close together they are. Up
    to that many both give the same.
    """
    if db not in _registered:  # SQLite would keep each registration until the connection is closed
        db.register_fts5_function("relevance", _relevance)
        _registered.add(db)


def _relevance(api: Any, *arguments: Any) -> float:
    top, *weights = arguments
    if api.aux_data is None:  # the first row of a query
        rows = api.row_count
        rarities = [_rarity(rows, _hits(api, phrase, top)) for phrase in range(api.phrase_count)]
        api.aux_data = rarities, api.column_total_size() / rows
    rarities, mean = api.aux_data
    length = _K1 * (1 - _B + _B * api.column_size() / mean)
    score = 0.0
    for phrase, rarity in enumerate(rarities):
        times = 0.0
        for weight, places in zip(weights, api.phrase_locations(phrase), strict=True):
            times += weight * len(places)
        score += rarity * times * (_K1 + 1) / (times + length)
    return score


def _hits(api: Any, phrase: int, top: int) -> float:
    """How many events have a phrase; the largest part of very many is estimated."""
    count = last = 0

    def count_one(row: Any, _: None) -> None:
        nonlocal count, last
        count += 1
        if count == COUNTED:
            last = row.rowid
            raise _Enough

    try:
        api.query_phrase(phrase, count_one, None)
    except _Enough:
        return float(min(api.row_count, count * max(1.0, top / last)))
    return count


def _rarity(rows: int, hits: float) -> float:
    return max(_LEAST, log((rows - hits + 0.5) / (hits + 0.5)))
