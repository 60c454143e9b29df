"""Ranks matches.

bm25 (`relevance.py`) with weights per column; prompts, answers, titles and recent events score
higher. A word that is nearly everywhere carries little information, and ranking all its matches
would be slow: events are ranked in pools, the newest first, and the first pool also has older
prompts and answers.
"""

from __future__ import annotations

import apsw

from sess_common.classes import dataclass, replace
from sess_common.times import DAY
from sess_schema.ids import EventId, SessionId
from sess_schema.queries.fields import Condition, Range
from sess_schema.queries.search import relevance
from sess_schema.queries.search.newest import Newest, Position
from sess_schema.queries.search.plan import Plan

# text, input, output, marks: what people and models said weighs more than what a tool printed.
_WEIGHTS = "10.0, 5.0, 1.0, 3.0"
POOL = 1500
LATER_POOL = 20_000  # anyone who pages this far wants everything
_SAID = 300
# A word is rarer in one column than in all of them, so it scores higher there.
_SAID_SCALE = 0.6
_TYPE = (
    "CASE e.type WHEN 'user' THEN iif(e.label IS 'command', 1.0, 1.5) WHEN 'summary' THEN 1.5"
    " WHEN 'assistant' THEN 1.1 WHEN 'tool_use' THEN 1.0 WHEN 'thinking' THEN 0.8 ELSE 0.6 END"
)
_HALF_LIFE = 14 * DAY
_FRESH = f"(1 + 0.6 * pow(0.5, min(max(? - coalesce(e.ts, 0), 0) / {_HALF_LIFE}.0, 50)))"
# Type and time must decide even for a word that is everywhere (whose relevance is 0).
_SCORE = f"(0.5 + ? * {relevance.NAME}(event_index, ?, {_WEIGHTS})) * {_TYPE} * {_FRESH}"

# Event, time, score (higher is better), session.
Row = tuple["EventId", int | None, float, "SessionId"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """An event and its score."""

    event: EventId
    ts: int | None
    session: SessionId
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Pool:
    """The matches of a period, the best first."""

    rows: list[Row]
    bottom: Position | None  # all matches before it are here; None: there are no others


@dataclass(frozen=True, slots=True)
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

    def _ranked(self, plan: Plan, scale: float, most: int, before: Position | None) -> Pool:
        plan = replace(plan, ranges=(*plan.ranges, Range("0", str(self.top))))
        columns = f"{_SCORE}, e.session_id"
        relevance.register(self.db)
        matches = Newest(self.db, plan, self.base, columns, (scale, self.top, self.now))
        rows, bottom = matches.rows(most, before)
        return Pool(sorted(rows, key=_best, reverse=True), bottom)


def _best(row: Row) -> tuple[float, bool, int, int]:
    event, ts, score, _ = row
    return score, ts is not None, ts or 0, event
