"""The events of one session, in the order of its records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from sess_schema.records import Records

_SELECT = (
    "SELECT e.id, e.type, e.label, e.tool, e.status, e.ts, e.duration_ms, e.summary, e.images,"
    " e.call_id, e.pointer, e.retired, e.session_id, x.text, x.input, x.output,"
    " o.source_id, o.retired, o.offset, o.length"
    " FROM turns t JOIN events e ON e.turn_id = coalesce(t.copy_of, t.id)"
    " JOIN turns o ON o.id = e.turn_id JOIN event_texts x ON x.id = e.id"
    " WHERE t.session_id = ?{} ORDER BY t.source_id, t.offset, t.id, e.block, e.id"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event with its texts."""

    place: tuple[int, int, int, int]  # source, retired, offset and length of its record
    event: int
    type: str
    label: str | None
    tool: str | None
    status: str | None
    ts: int | None
    duration_ms: int | None
    summary: str | None
    images: int
    call_id: str | None
    pointer: str | None
    retired: int
    owner: int  # the session it was first written in
    text: str
    input: str
    output: str


def entries(db: apsw.Connection, session: int, *, superseded: bool = False) -> Iterator[Entry]:
    """Every event once, copies that the session shares with its original included."""
    seen: set[int] = set()
    sql = _SELECT.format("" if superseded else " AND t.retired = 0 AND e.retired = 0")
    columns: tuple[Any, ...]
    for columns in db.execute(sql, (session,)):
        *told, source_id, gone, offset, length = columns
        if told[0] not in seen:
            seen.add(told[0])
            yield Entry((source_id, gone, offset, length), *told)


def structured_input(db: apsw.Connection, entry: Entry) -> Any:
    """A tool's input as the agent wrote it; its text where the record no longer tells."""
    if entry.pointer is not None:
        value = Records(db).value(entry.place, entry.pointer)
        if value is not None:
            return value
    return entry.input or None


def files(db: apsw.Connection, event: int) -> list[dict[str, str]]:
    return [
        {"path": path, "action": action}
        for path, action in db.execute(
            "SELECT path, action FROM files WHERE event_id = ? ORDER BY path, action", (event,)
        )
    ]


def failures(db: apsw.Connection, session: int) -> int:
    """How many tool calls of a session failed or were refused."""
    found = db.execute(
        "SELECT count(DISTINCT e.id) FROM turns t JOIN events e"
        " ON e.turn_id = coalesce(t.copy_of, t.id) WHERE t.session_id = ? AND t.retired = 0"
        " AND e.status IN ('error', 'denied')",
        (session,),
    ).get
    return int(found)


def holds(db: apsw.Connection, session: int, event: int, *, superseded: bool = False) -> bool:
    """Whether an event is one that `entries` gives."""
    current = "" if superseded else " AND t.retired = 0 AND e.retired = 0"
    found = db.execute(
        "SELECT 1 FROM events e JOIN turns t ON coalesce(t.copy_of, t.id) = e.turn_id"
        f" WHERE e.id = ? AND t.session_id = ?{current}",
        (event, session),
    ).get
    return found is not None
