"""The right thing first.

bm25 with weights per column, more for what people said and for titles, more for what is new. A
word that is nearly everywhere says little, and ranking every place of it would take long: events
are ranked in pools, the newest first, and the first pool also has what people said earlier.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from sess_schema.queries.fields import Condition
from sess_schema.queries.search.plan import Plan
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
class Ranker:
    """Ranks what a plan finds on an index."""

    db: apsw.Connection
    plan: Plan
    base: Condition
    now: int

    def pool(self, below: int, most: int) -> list[Row]:
        """The newest matches below a number, the best first."""
        return self._ranked(self.plan.match, 1.0, below, most)

    def said(self, below: int) -> list[Row]:
        """The newest of what people and agents said, the best first."""
        match = f"({{text}} : {self.plan.match})"
        if self.plan.excludes:  # what is excluded may stand in another column
            match += f" AND {self.plan.match}"
        return self._ranked(match, _SAID_SCALE, below, _SAID)

    def _ranked(self, match: str | None, scale: float, below: int, most: int) -> list[Row]:
        sql, values = matching(self.plan, self.base, match, f"{_SCORE}, e.session_id")
        newest = f"{sql} AND event_index.rowid < ? ORDER BY event_index.rowid DESC LIMIT ?"
        rows = self.db.execute(
            f"SELECT * FROM ({newest}) ORDER BY 3 DESC, 2 DESC, 1 DESC",
            (scale, self.now, *values, below, most),
        )
        return list(rows)


def matching(
    plan: Plan, base: Condition, match: str | None, columns: str, *, texts: bool = False
) -> tuple[str, list[object]]:
    """SELECT e.id, e.ts and other columns of what a plan lets through."""
    join = " CROSS JOIN event_texts x ON x.id = e.id" if plan.where.texts or texts else ""
    where = f"{base.sql} AND ({plan.where.sql})"
    more = f", {columns}" if columns else ""
    if match is None:
        return (
            f"SELECT e.id, e.ts{more} FROM events e{join} WHERE {where}",
            [*base.values, *plan.where.values],
        )
    bounds = "".join(f" AND {bound.sql}" for bound in plan.bounds)
    bound_values = [value for bound in plan.bounds for value in bound.values]
    sql = (
        f"SELECT e.id, e.ts{more} FROM event_index CROSS JOIN events e ON e.id = event_index.rowid"
        f"{join} WHERE event_index MATCH ?{bounds} AND {where}"
    )
    return sql, [match, *bound_values, *base.values, *plan.where.values]
