"""The responses, prompts and calls behind a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import apsw

from sess_common import times
from sess_schema.ids import EventId
from sess_schema.queries.quarters import Reader, Row
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import scope
from sess_schema.sums import COUNTED_EVENTS, MODEL, Tally, is_model

TOTAL = "total"
_DAYS = {"hour": 1, "day": 1, "week": 7, "month": 31}


@dataclass(slots=True, frozen=True)
class Line:
    """One counted item; its tally is what it adds."""

    kind: str  # response, prompt, call
    session: str
    event: EventId | None
    ts: int | None
    model: str | None
    tool: str | None
    status: str | None
    tally: Tally


def lines(db: apsw.Connection, asked: Stats, by: str, group: str) -> Iterator[Line]:
    """Everything behind the sums of a group, by time; `by` is empty for the total."""
    models = scope.Models(db, asked)  # the last one that answered may have done so long before
    asked = _narrowed(asked, by, group)
    label = asked.label(Reader(db, asked, {by}), by)
    wanted = "" if not by else group
    behind = [
        line
        for row, line in (*_responses(db, asked), *_events(db, asked, by, models))
        if label(row) == wanted
    ]
    yield from sorted(behind, key=lambda line: (line.ts is None, line.ts or 0, line.event or 0))


def _narrowed(asked: Stats, by: str, group: str) -> Stats:
    """Limit the window to the period of a group; an extra day on both sides covers every zone."""
    if by not in _DAYS:
        return asked
    try:
        first = date.fromisoformat((group + "-01")[:10]) - timedelta(days=1)
    except (ValueError, OverflowError):
        return asked
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    since = int(start.timestamp() * 1000)
    until = since + (_DAYS[by] + 2) * times.DAY
    return replace(
        asked,
        since=since if asked.since is None else max(since, asked.since),
        until=until if asked.until is None else min(until, asked.until),
    )


def _responses(db: apsw.Connection, asked: Stats) -> Iterator[tuple[Row, Line]]:
    wanted = scope.responses(db, asked)
    for key, name, ts, model, event, reasoned, *counts in db.execute(
        f"SELECT u.session_id, s.native_id, u.ts, {MODEL},"
        " (SELECT min(e.id) FROM events e WHERE e.record_id = u.record_id),"
        " u.reasoning_tokens,"
        " u.input_tokens, u.output_tokens, u.cache_write_tokens, u.cache_write_1h_tokens,"
        f" u.cache_read_tokens, coalesce(u.cost_nano, 0), u.cost_nano IS NULL, 1 {wanted.sql}",
        wanted.values,
    ):
        tally = Tally(*counts)
        tally.reasoning_tokens = reasoned
        row = Row(scope.quarter_of(ts), key, model, None)
        yield row, Line("response", name, event, ts, model, None, None, tally)


def _events(
    db: apsw.Connection, asked: Stats, by: str, models: scope.Models
) -> Iterator[tuple[Row, Line]]:
    wanted = scope.events(db, replace(asked, models=()))
    path = "(SELECT min(f.path) FROM files f WHERE f.event_id = e.id)" if by == "file" else "NULL"
    for key, name, ts, event, kind, tool, status, what in db.execute(
        f"SELECT s.id, s.native_id, e.ts, e.id, e.type, e.tool, e.status, {path}"
        f" {wanted.sql} AND {COUNTED_EVENTS}",
        wanted.values,
    ):
        model = models.at(key, ts)
        if asked.models and not is_model(model, asked.models):
            continue
        called = kind == "tool_use"
        tally = Tally(
            prompts=int(not called),
            tool_calls=int(called),
            tool_errors=int(called and status == "error"),
            tool_denied=int(called and status == "denied"),
        )
        used = (tool or "unknown") if called else None
        row = Row(scope.quarter_of(ts), key, model, what if by == "file" else used)
        yield row, Line("call" if called else "prompt", name, event, ts, model, used, status, tally)
