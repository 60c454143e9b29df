"""Events by time: the newest that match, all in order, and where a page of them ended.

Events are numbered as they were read, which is not their order in time. Their blocks are looked at
by the newest event that each may hold, until no other block can have a newer match: so a common
word does not make a search sort all that match.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

import apsw

from sess_common.classes import TYPE_CHECKING, asdict, dataclass, replace
from sess_common.errors import SessError
from sess_schema import search_index
from sess_schema.queries.fields import Condition, Range
from sess_schema.queries.search.plan import Plan, between, matching

if TYPE_CHECKING:
    from typing import Any

    Row = tuple[Any, ...]  # number and time of an event, and what else was asked for

BY_TIME = {"newest": "e.ts DESC, e.id DESC", "oldest": "e.ts, e.id"}
# The same without using an index.
SORTED = {"newest": "+e.ts DESC, +e.id DESC", "oldest": "+e.ts, +e.id"}
_FIRST = 20_000  # events, or an eighth of them
_BLOCKS_AT_ONCE = 4  # to begin with
_GAP = 1 << 14  # events, which take longer to read than another query to start
_LONGEST_CURSOR = 1 << 20

Position = tuple[int | None, int]  # time and number of an event


def split_by_time(db: apsw.Connection, top: int, sort: str) -> tuple[Condition, Condition] | None:
    """The events to read by time, so that the first hits come at once, and the rest, to read in
    file order, which is twice as fast. None if there are few."""
    ts = db.execute(
        f"SELECT e.ts FROM events e ORDER BY {BY_TIME[sort]} LIMIT 1 OFFSET ?",
        (max(_FIRST, top >> 3),),
    ).get
    if ts is None:
        return None
    if sort == "newest":
        return Condition("e.ts > ?", (ts,)), Condition("+e.ts <= ? OR +e.ts IS NULL", (ts,))
    return Condition("e.ts < ? OR e.ts IS NULL", (ts,)), Condition("+e.ts >= ?", (ts,))


def after_row(last: tuple[int | None, int] | None, sort: str) -> Condition | None:
    """After a row in order of time; undated events are the oldest."""
    if last is None:
        return None
    ts, event = last
    sign = "<" if sort == "newest" else ">"
    if ts is None:
        more = "" if sort == "newest" else " OR e.ts IS NOT NULL"
        return Condition(f"(e.ts IS NULL AND e.id {sign} ?){more}", (event,))
    undated = " OR e.ts IS NULL" if sort == "newest" else ""
    return Condition(f"e.ts {sign} ? OR (e.ts = ? AND e.id {sign} ?){undated}", (ts, ts, event))


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

    def rows(self, most: int, before: Position | None = None) -> tuple[list[Row], Position | None]:
        """Up to `most` of the newest matches before a position, and the position to continue
        from, None at the end."""
        after = after_row(before, "newest")
        base = self._base if after is None else both(self._base, after)
        if self._are_few(most):
            every = self._matches(base, columns=self._columns)
            return sorted(every, key=_when, reverse=True), None
        rows: list[Row] = []
        blocks, at_once = search_index.blocks_between(self._db, *self._limits), _BLOCKS_AT_ONCE
        limits = [range_.since for range_ in self._plan.ranges if range_.since is not None]
        since = max(limits, default=-1)
        blocks = [block for block in blocks if block[0] >= since]
        done = 0
        while done < len(blocks):
            oldest = rows[-1][1] if len(rows) == most else None
            if oldest is not None and oldest > blocks[done][0]:
                break
            dated = base if oldest is None else both(base, Condition("e.ts >= ?", (oldest,)))
            for first, last in _stretches(blocks[done : done + at_once]):
                rows += self._candidates(dated, first, last)
            done += at_once
            # As many as should have the rest, but not many more than were needed until now.
            missing = max(0, most - len(rows)) * done // max(1, len(rows))
            at_once = max(_BLOCKS_AT_ONCE, min(missing, 4 * done))
            rows.sort(key=_when, reverse=True)
            del rows[most:]
        below = (rows[-1][1], rows[-1][0]) if len(rows) == most else None
        return self._whole(base, rows), below

    @cached_property
    def _limits(self) -> tuple[int, int]:
        """The smallest and the largest number that a match may have."""
        last = int(self._db.execute("SELECT coalesce(max(id), 0) FROM events").get)
        sql, values = between([*self._plan.ranges, Range("0", str(last))])
        ((first, last),) = self._db.execute(f"SELECT {sql[0]}, {sql[1]}", values)
        return first, last

    def _are_few(self, most: int) -> bool:
        """Whether fewer events than that have the words."""
        if self._begun is not None:
            return len(self._begun) < most
        first, last = self._limits
        counted = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM event_index WHERE event_index MATCH ?"
            f" AND rowid BETWEEN {first} AND {last} LIMIT {most})",
            (self._plan.match,),
        ).get
        return int(counted or 0) < most

    def _candidates(self, base: Condition, first: int, last: int) -> list[Row]:
        """Numbers and times of the matches in a stretch."""
        numbers = self._begun
        if numbers is None:
            return self._matches(base, Range(str(first), str(last)))
        inside = numbers[bisect_left(numbers, first) : bisect_right(numbers, last)]
        sql, values = matching(self._plan, both(base, among("e.id", inside)), None, "")
        return list(self._db.execute(sql, values))

    @cached_property
    def _begun(self) -> list[int] | None:
        """All events with a word that begins so: full text collects these for every query."""
        if "*" not in (self._plan.match or ""):
            return None
        first, last = self._limits
        rows = self._db.execute(
            "SELECT rowid FROM event_index WHERE event_index MATCH ?"
            f" AND rowid BETWEEN {first} AND {last}",
            (self._plan.match,),
        )
        return [number for (number,) in rows]

    def _whole(self, base: Condition, dated: Sequence[Row]) -> list[Row]:
        """The same with their other columns: for a score, full text counts matches."""
        whole: dict[int, Row] = {}
        for numbers in _close(sorted(row[0] for row in dated)):
            chosen = among("+event_index.rowid", numbers)
            near = Range(str(numbers[0]), str(numbers[-1]))
            rows = self._matches(both(base, chosen), near, columns=self._columns)
            whole.update((row[0], row) for row in rows)
        return [whole[row[0]] for row in dated]

    def _matches(self, base: Condition, *ranges: Range, columns: str = "") -> list[Row]:
        first, last = self._limits
        plan = replace(self._plan, ranges=(Range(str(first), str(last)), *ranges))
        sql, values = matching(plan, base, plan.match, columns)
        return list(self._db.execute(sql, (*(self._values if columns else ()), *values)))


def _close(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Numbers in groups, without the matches of the large gaps between these."""
    begin = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] - numbers[at - 1] > _GAP:
            yield numbers[begin:at]
            begin = at


def among(number: str, numbers: Sequence[int]) -> Condition:
    listed = f"[{','.join(map(str, numbers))}]"
    return Condition(f"{number} IN (SELECT value FROM json_each(?))", (listed,))


def both(one: Condition, other: Condition) -> Condition:
    return Condition(f"{one.sql} AND ({other.sql})", (*one.values, *other.values))


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


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page of results ended, as text for the next request to pass back.

    New events never appear in later pages: their ids are larger than `top`. They may shift scores,
    so the events already returned from the current pool are listed, not counted.
    """

    query: int  # fingerprint: another query cannot continue from here
    now: int
    top: int
    below: Position | None = None  # where the current pool starts
    edge: Position | None = None  # where the first pool ended
    given: tuple[int, ...] = ()
    last: Position | None = None  # when sorted by time

    def encoded(self) -> str:
        import json  # few searches are paged
        import zlib
        from base64 import urlsafe_b64encode

        values = asdict(self)
        steps = sorted(self.given)
        values["given"] = [b - a for a, b in zip([0, *steps], steps, strict=False)]
        packed = zlib.compress(json.dumps(list(values.values())).encode(), 9)
        return urlsafe_b64encode(packed).decode().rstrip("=")


def _position(pair: list[int | None] | None) -> Position | None:
    if pair is None:
        return None
    ts, event = pair
    return None if ts is None else int(ts), int(event or 0)


def decoded_cursor(text: str, query: int) -> Cursor:
    import binascii
    import json
    import zlib
    from base64 import urlsafe_b64decode

    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        packed = zlib.decompressobj().decompress(raw, _LONGEST_CURSOR)
        which, now, top, below, edge, steps, last = json.loads(packed)
        given, at = [], 0
        for step in steps:
            at += step
            given.append(at)
        cursor = Cursor(
            which, now, top, _position(below), _position(edge), tuple(given), _position(last)
        )
        _ = now + top + sum(given)
    except (ValueError, TypeError, binascii.Error, zlib.error) as error:
        raise SessError("invalid cursor", hint="use the one that the last page printed") from error
    if which != query:
        raise SessError(
            "the cursor belongs to another search",
            hint="use it with the same words and options",
        )
    return cursor
