"""The files touched, and the sessions that touched them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw

from sess_common import times
from sess_schema.ids import NO_EVENT, EventId, SessionId
from sess_schema.queries import fields
from sess_schema.queries.sessions import title_for
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import parts, scope
from sess_schema.queries.views.parts import Counted

PART = "files"


@dataclass(slots=True)
class Touched:
    """One session's use of some files."""

    name: str  # the session's id
    title: str | None = None
    project: str | None = None
    edits: int = 0
    writes: int = 0
    reads: int = 0
    paths: set[str] = field(default_factory=set)
    first: int | None = None
    last: int | None = None
    event: EventId = NO_EVENT  # the last one
    session: str = ""  # the session of that event


class File(NamedTuple):
    """One file; there may be very many."""

    name: str
    edits: int
    writes: int
    reads: int
    first: int | None
    last: int | None
    sessions: int

    @property
    def changes(self) -> int:
        return self.edits + self.writes


def most_edited(db: apsw.Connection, asked: Stats) -> list[File]:
    """Every file touched, the most often changed first."""
    found: dict[str, list[Any]] = {}
    for _, touched in parts.of(db, asked, PART, by_session):
        for path, edits, writes, reads, first, last in touched:
            one = found.get(path)
            if one is None:
                found[path] = [edits, writes, reads, first, last, 1]
                continue
            one[0] += edits
            one[1] += writes
            one[2] += reads
            if first is not None:
                one[3] = first if one[3] is None else min(one[3], first)
                one[4] = last if one[4] is None else max(one[4], last)
            one[5] += 1
    ordered = sorted(found.items(), key=lambda one: (-one[1][0] - one[1][1], -one[1][2], one[0]))
    return [File(path, *counts) for path, counts in ordered]


def by_session(db: apsw.Connection, asked: Stats) -> Counted:
    """Of each file: edits, writes and reads, and the first and last time of these."""
    found: dict[SessionId, list[Any]] = {}
    wanted = scope.calls(db, asked, joins="CROSS JOIN files f ON f.event_id = e.id")
    edits, writes, reads = (f"sum(f.action = '{action}')" for action in ("edit", "write", "read"))
    for session, *counts in db.execute(
        f"SELECT s.id, f.path, {edits}, {writes}, {reads}, min(e.ts), max(e.ts) {wanted.sql}"
        " AND e.status = 'ok' GROUP BY s.id, f.path",
        wanted.values,
    ):
        found.setdefault(session, []).append(counts)
    for session, touched in found.items():
        yield session, {PART: touched}


def sessions_of(db: apsw.Connection, asked: Stats, path: str) -> list[Touched]:
    """The sessions that touched a file: a path, a name, the end of a path, or a glob."""
    which = fields.condition(db, "file", path, fields.Setting(now=times.now_ms()))
    like = _path_condition(path)
    found: dict[SessionId, Touched] = {}
    for row in _rows(db, asked, which, like):
        one = found.get(row[1])
        if one is None:
            one = found[row[1]] = Touched(row[2], row[3], row[4])
        _add(one, row)
    for key, one in found.items():
        one.title = title_for(db, key, one.title)
    return sorted(found.values(), key=lambda one: (-(one.last or 0), one.name))


def _path_condition(path: str) -> fields.Condition:
    """A call may also touch files that do not match."""
    name = path.removeprefix("./").lower()
    end = "/" + name.lstrip("/")
    return fields.Condition(
        "(lower(f.path) IN (?, ?) OR substr(lower(f.path), -?) = ? OR lower(f.path) GLOB ?"
        " OR lower(f.path) GLOB ?)",
        (name, path.lower(), len(end), end, name, f"*{end}"),
    )


Row = tuple[str, SessionId, str, str | None, str | None, str, int | None, EventId]


def _rows(
    db: apsw.Connection,
    asked: Stats,
    which: fields.Condition,
    path: fields.Condition = fields.ANY,
) -> Iterator[Row]:
    wanted = scope.calls(db, asked, joins="JOIN files f ON f.event_id = e.id")
    yield from db.execute(
        "SELECT f.path, s.id, s.native_id, s.title,"
        f" s.project, f.action, e.ts, e.id {wanted.sql} AND e.status = 'ok'"
        f" AND {which.sql} AND {path.sql}",
        (*wanted.values, *which.values, *path.values),
    )


def _add(one: Touched, row: Row) -> None:
    path, _, session, _, _, action, ts, event = row
    one.edits += action == "edit"
    one.writes += action == "write"
    one.reads += action == "read"
    one.paths.add(path)
    if ts is not None and (one.first is None or ts < one.first):
        one.first = ts
    if (ts or 0, event) >= (one.last or 0, one.event):
        one.last = ts if ts is not None else one.last
        one.event, one.session = event, session
