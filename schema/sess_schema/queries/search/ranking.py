"""The right thing first.

bm25 with weights per column, more for what people said and for titles, more for what is new. A
word that is nearly everywhere says little, and ranking every place of it would take long: events
are ranked in pools, the newest first, and the first pool also has what people said earlier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import apsw

from sess_schema.queries.fields import ANY, Condition
from sess_schema.queries.search.newest import Position, newest, number_behind
from sess_schema.queries.search.plan import Plan, matching
from sess_schema.times import DAY

# text, input, output, marks: what was said weighs more than what a tool printed.
_WEIGHTS = "10.0, 5.0, 1.0, 3.0"
POOL = 1500
LATER_POOL = 20_000  # who goes that far, wants them all
_SAID = 300
# A word is rarer in one column than in all of them, which makes it count for more there.
_SAID_SCALE = 0.6
_TYPE = (
    "CASE e.type WHEN 'user' THEN iif(e.label IS 'command', 1.0, 1.5) WHEN 'summary' THEN 1.5"
    " WHEN 'assistant' THEN 1.1 WHEN 'tool_use' THEN 1.0 WHEN 'thinking' THEN 0.8 ELSE 0.6 END"
)
_HALF_LIFE = 14 * DAY
_FRESH = f"(1 + 0.6 * pow(0.5, min(max(? - coalesce(e.ts, 0), 0) / {_HALF_LIFE}.0, 50)))"
# Even a word that is everywhere (whose bm25 is 0) must let type and time decide.
_SCORE = f"(0.5 - ? * bm25(event_index, {_WEIGHTS})) * {_TYPE} * {_FRESH}"

Row = tuple[int, int | None, float, int]  # event, time, score (larger is better), session


@dataclass(frozen=True, slots=True)
class Ranked:
    """An event and how good it is."""

    event: int
    ts: int | None
    session: int
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Pool:
    """Matches of a stretch of time, the best first."""

    rows: list[Row]
    bottom: Position | None  # the oldest of them
    full: bool  # there may be older ones


@dataclass(frozen=True, slots=True)
class Ranker:
    """Ranks what a plan finds on an index, up to the event with the number `top`."""

    db: apsw.Connection
    plan: Plan
    base: Condition
    now: int
    top: int

    def pool(self, most: int, before: Position | None = None) -> Pool:
        """The newest matches behind a position, the best first."""
        return self._ranked(self.plan, 1.0, most, before)

    def said(self, before: Position) -> Pool:
        """The newest of what people and agents said, the best first."""
        match = f"({{text}} : {self.plan.match})"
        if self.plan.excludes:  # what is excluded may stand in another column
            match += f" AND {self.plan.match}"
        return self._ranked(replace(self.plan, match=match), _SAID_SCALE, _SAID, before)

    def _ranked(self, plan: Plan, scale: float, most: int, before: Position | None) -> Pool:
        top = Condition("event_index.rowid <= ?", (self.top,))
        plan = replace(plan, bounds=(*plan.bounds, top))
        if before is None and number_behind(self.db, plan, most - 1) is None:
            return Pool(self._scored(plan, scale), None, full=False)
        found = newest(self.db, plan, self.base, most, before)
        if not found:
            return Pool([], None, full=False)
        events = [event for event, _, _ in found]
        # The first bound keeps full text from looking at anything outside of it.
        chosen = (
            Condition("event_index.rowid BETWEEN ? AND ?", (min(events), max(events))),
            Condition(
                "+event_index.rowid IN (SELECT value FROM json_each(?))",
                (f"[{','.join(map(str, events))}]",),
            ),
        )
        rows = self._scored(replace(plan, bounds=chosen, where=ANY), scale)
        event, ts, _ = found[-1]
        return Pool(rows, (ts, event), full=len(found) == most)

    def _scored(self, plan: Plan, scale: float) -> list[Row]:
        sql, values = matching(plan, self.base, plan.match, f"{_SCORE}, e.session_id")
        return list(
            self.db.execute(f"{sql} ORDER BY 3 DESC, 2 DESC, 1 DESC", (scale, self.now, *values))
        )
