"""The newest matching events, without sorting every match of a common word.

The full-text index knows events by id, and ids do not follow time: what is imported today may be
years old. For a common word, therefore, only matches among the newest events are sorted, in a
window expected to hold enough of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import apsw

from sess_schema.queries.fields import ANY, Condition
from sess_schema.queries.search import order
from sess_schema.queries.search.plan import Plan, matching

Position = tuple[int | None, int]  # time and id of an event
Match = tuple[int, int | None, int]  # event, time, session

_SPARE = 1.25  # times the number of events expected to be enough
_WIDER = 4  # times that, where filters leave some out
_WINDOWS = 2
_IN_ORDER = 3  # ids per event of a window, below which collecting its events does not pay
_SORTING = 8  # cost of sorting a match, relative to collecting an event


def newest(
    db: apsw.Connection, plan: Plan, base: Condition, most: int, before: Position | None = None
) -> list[Match]:
    """The newest matches of a plan after a position, by time and then by id."""
    after = order.after(before, "newest")
    if after is not None:
        base = Condition(f"{base.sql} AND ({after.sql})", (*base.values, *after.values))
    for window in _windows(db, plan, most, before):
        found = _sorted(db, replace(plan, bounds=(*plan.bounds, *window)), base, most)
        if len(found) == most:
            return found
    return _sorted(db, plan, base, most)


def id_after(db: apsw.Connection, plan: Plan, most: int) -> int | None:
    """The id of the match after the `most` with the largest ids; None if there are fewer."""
    sql = "SELECT rowid FROM event_index WHERE event_index MATCH ? ORDER BY rowid DESC"
    found: int | None = db.execute(f"{sql} LIMIT 1 OFFSET ?", (plan.match, most)).get
    return found


def _sorted(db: apsw.Connection, plan: Plan, base: Condition, most: int) -> list[Match]:
    sql, values = matching(plan, base, plan.match, "e.session_id")
    return list(db.execute(f"{sql} ORDER BY {order.SORTED['newest']} LIMIT ?", (*values, most)))


def _windows(
    db: apsw.Connection, plan: Plan, most: int, before: Position | None
) -> Iterator[tuple[Condition, Condition]]:
    """Ever longer windows of time, up to the position, that should hold enough matches; none once
    collecting their events would take longer than sorting all matches."""
    behind = id_after(db, plan, most)
    end = db.execute("SELECT max(ts) FROM events").get if before is None else before[0]
    if behind is None or end is None:
        return
    last = db.execute("SELECT max(id) FROM events").get
    span = last - behind  # ids that hold `most` matches
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
