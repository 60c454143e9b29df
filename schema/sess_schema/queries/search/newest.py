"""The newest events that match, without sorting all of those that match a common word.

Full text knows events by their numbers, and numbers say nothing about time: what is imported today
may be years old. Of a common word, therefore, only matches among the newest events of all are
sorted, in as many events as should hold enough of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import apsw

from sess_schema.queries.fields import ANY, Condition
from sess_schema.queries.search import order
from sess_schema.queries.search.plan import Plan, matching

Position = tuple[int | None, int]  # time and number of an event
Match = tuple[int, int | None, int]  # event, time, session

_SPARE = 1.25  # times as many events as should be enough
_WIDER = 4  # and so many times as many where filters leave some out
_WINDOWS = 2
_IN_ORDER = 3  # numbers per event of a window, up to which it is no use to collect its events
_SORTING = 8  # times as long as collecting an event takes sorting a match


def newest(
    db: apsw.Connection, plan: Plan, base: Condition, most: int, before: Position | None = None
) -> list[Match]:
    """The newest matches of a plan, by time and then by number, behind a position."""
    after = order.after(before, "newest")
    if after is not None:
        base = Condition(f"{base.sql} AND ({after.sql})", (*base.values, *after.values))
    for window in _windows(db, plan, most, before):
        found = _sorted(db, replace(plan, bounds=(*plan.bounds, *window)), base, most)
        if len(found) == most:
            return found
    return _sorted(db, plan, base, most)


def number_behind(db: apsw.Connection, plan: Plan, most: int) -> int | None:
    """The number of the match behind so many others with larger ones; None if they are fewer."""
    sql = "SELECT rowid FROM event_index WHERE event_index MATCH ? ORDER BY rowid DESC"
    number: int | None = db.execute(f"{sql} LIMIT 1 OFFSET ?", (plan.match, most)).get
    return number


def _sorted(db: apsw.Connection, plan: Plan, base: Condition, most: int) -> list[Match]:
    sql, values = matching(plan, base, plan.match, "e.session_id")
    return list(db.execute(f"{sql} ORDER BY {order.SORTED['newest']} LIMIT ?", (*values, most)))


def _windows(
    db: apsw.Connection, plan: Plan, most: int, before: Position | None
) -> Iterator[tuple[Condition, Condition]]:
    """Stretches of time that end where the matches begin and should hold enough of them, as long
    as collecting their events takes less than sorting all matches."""
    number = number_behind(db, plan, most)
    end = db.execute("SELECT max(ts) FROM events").get if before is None else before[0]
    if number is None or end is None:
        return
    last = db.execute("SELECT max(id) FROM events").get
    span = last - number  # of numbers, for as many matches as are wanted
    events = int(_SPARE * span)
    if plan.where.sql != ANY.sql:
        events *= _WIDER
    for _ in range(_WINDOWS):
        if events > _SORTING * most * last / span:
            return
        start = db.execute(
            "SELECT ts FROM events WHERE ts <= ? ORDER BY ts DESC LIMIT 1 OFFSET ?", (end, events)
        ).get
        if start is None:
            return
        inside = "FROM events WHERE ts BETWEEN ? AND ?"
        ((low, high),) = db.execute(f"SELECT min(id), max(id) {inside}", (start, end))
        if high - low < _IN_ORDER * events:
            among = Condition("e.ts >= ?", (start,))
        else:
            among = Condition(f"+event_index.rowid IN (SELECT id {inside})", (start, end))
        yield Condition("event_index.rowid BETWEEN ? AND ?", (low, high)), among
        events *= _WIDER
