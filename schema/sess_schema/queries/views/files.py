"""The files touched, and the sessions that touched them."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from sess_schema import times
from sess_schema.classes import dataclass, field
from sess_schema.queries import fields
from sess_schema.queries.sessions import title_for
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import scope


@dataclass(slots=True)
class Touched:
    """One file, or one session's use of some files."""

    name: str  # the path, or the session's id
    title: str | None = None
    project: str | None = None
    edits: int = 0
    writes: int = 0
    reads: int = 0
    sessions: set[int] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    first: int | None = None
    last: int | None = None
    event: int = 0  # the last one
    session: str = ""  # the session of that event

    @property
    def changes(self) -> int:
        return self.edits + self.writes


def most_edited(db: apsw.Connection, asked: Stats) -> list[Touched]:
    """Every file touched, the most often changed first."""
    found: dict[str, Touched] = {}
    for row in _rows(db, asked, fields.ANY):
        one = found.get(row[0])
        if one is None:
            one = found[row[0]] = Touched(row[0])
        _add(one, row)
    return sorted(found.values(), key=lambda one: (-one.changes, -one.reads, one.name))


def sessions_of(db: apsw.Connection, asked: Stats, path: str) -> list[Touched]:
    """The sessions that touched a file: a path, a name, the end of a path, or a glob."""
    which = fields.condition(db, "file", path, fields.Setting(now=times.now_ms()))
    like = _path_condition(path)
    found: dict[int, Touched] = {}
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


Row = tuple[str, int, str, str | None, str | None, str, int | None, int]


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
    path, key, session, _, _, action, ts, event = row
    one.edits += action == "edit"
    one.writes += action == "write"
    one.reads += action == "read"
    one.sessions.add(key)
    one.paths.add(path)
    if ts is not None and (one.first is None or ts < one.first):
        one.first = ts
    if (ts or 0, event) >= (one.last or 0, one.event):
        one.last = ts if ts is not None else one.last
        one.event, one.session = event, session
