"""The newest events that match, without sorting all that match a common word.

Full text returns the largest event numbers first. Those are the newest events, unless older ones
were read later. A match that is newer than every event with a smaller number is certain. Where too
few are, the blocks of smaller numbers that may hold newer events are read, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw

from sess_schema import event_blocks
from sess_schema.classes import TYPE_CHECKING, replace
from sess_schema.queries.fields import Condition
from sess_schema.queries.search import order
from sess_schema.queries.search.plan import Plan, matching

if TYPE_CHECKING:
    from typing import Any

    Row = tuple[Any, ...]  # number and time of an event, and what else was asked for

Position = tuple[int | None, int]  # time and number of an event

_BLOCKS_AT_ONCE = 4  # to begin with
_BEHIND_ALL = (1 << 63) - 1  # a number that no event has


def newest(
    db: apsw.Connection, plan: Plan, base: Condition, most: int, columns: str = "e.session_id"
) -> list[Row]:
    """The newest matches of a plan, by time and then by number."""
    return Newest(db, plan, base, columns).rows(most)[0]


class Newest:
    """Reads the matches of a plan, the newest first."""

    def __init__(
        self,
        db: apsw.Connection,
        plan: Plan,
        base: Condition,
        columns: str,
        values: Sequence[object] = (),
    ) -> None:
        """`values` are those of `columns`."""
        self._db = db
        self._plan = plan
        self._base = base
        self._columns = columns
        self._values = values

    def rows(
        self, most: int, least: int | None = None, before: Position | None = None
    ) -> tuple[list[Row], Position | None]:
        """Up to `most` of the newest matches before a position, and the position to continue
        from, None at the end. Stops at `least` or more where the rest would cost a query."""
        after = order.after(before, "newest")
        base = self._base
        if after is not None:
            base = Condition(f"{base.sql} AND ({after.sql})", (*base.values, *after.values))
        found = self._matches(base, rest=f" ORDER BY event_index.rowid DESC LIMIT {most}")
        if len(found) < most:
            return sorted(found, key=_when, reverse=True), None
        lowest = found[-1][0]
        found.sort(key=_when, reverse=True)
        bound = event_blocks.newest_below(self._db, lowest)
        later = [row for row in found if bound is None or (row[1] or -1) > bound]
        if bound is not None and later and len(later) >= (most if least is None else least):
            return later, (bound, _BEHIND_ALL)
        found = self._with_smaller_numbers(base, found, lowest)
        return found, (found[-1][1], found[-1][0])

    def _with_smaller_numbers(self, base: Condition, found: list[Row], lowest: int) -> list[Row]:
        """Replace the oldest rows by newer ones with smaller numbers."""
        most = len(found)
        blocks, at_once = event_blocks.below(self._db, lowest), _BLOCKS_AT_ONCE
        while blocks:
            oldest = found[-1][1]
            later = [block for block in blocks[:at_once] if oldest is None or block[0] >= oldest]
            if not later:
                break
            blocks = blocks[len(later) :]
            at_once *= 2
            dated = () if oldest is None else (Condition("e.ts >= ?", (oldest,)),)
            for stretch in _stretches(later):
                found += self._matches(base, _between(*stretch), *dated, whole=False)
            found.sort(key=_when, reverse=True)
            del found[most:]
        # Their other columns, once: a score makes full text look at every match of a word.
        came = [row[0] for row in found if row[0] < lowest]
        if came:
            chosen = Condition(
                "+event_index.rowid IN (SELECT value FROM json_each(?))",
                (f"[{','.join(map(str, came))}]",),
            )
            among = self._matches(base, _between(min(came), max(came)), chosen)
            complete = {row[0]: row for row in among}
            found = [complete.get(row[0], row) for row in found]
        return found

    def _matches(
        self, base: Condition, *bounds: Condition, rest: str = "", whole: bool = True
    ) -> list[Row]:
        plan = replace(self._plan, bounds=(*self._plan.bounds, *bounds))
        sql, values = matching(plan, base, plan.match, self._columns if whole else "")
        return list(self._db.execute(sql + rest, (*(self._values if whole else ()), *values)))


def _between(first: int, last: int) -> Condition:
    return Condition("event_index.rowid BETWEEN ? AND ?", (first, last))


def _when(row: Row) -> tuple[bool, int, int]:
    """Undated events are the oldest."""
    return row[1] is not None, row[1] or 0, row[0]


def _stretches(blocks: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Numbers from and to, of blocks that lie side by side together."""
    first = last = -2
    for _, begin, end in sorted(blocks, key=lambda block: block[1]):
        if begin != last + 1:
            if last >= 0:
                yield first, last
            first = begin
        last = end
    yield first, last
