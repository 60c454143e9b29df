"""What was changed: edits by tool and file type, and the files that sessions touched."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw

from sess_common import times
from sess_schema import kinds
from sess_schema.ids import NO_EVENT, EventId, SessionId
from sess_schema.queries import fields
from sess_schema.queries.sessions import title_for
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import interruptions, parts, scope
from sess_schema.queries.views.interruptions import Turn, turns
from sess_schema.queries.views.parts import Counted

EDITS_PART = "edits"
Paths = tuple[str, ...]


@dataclass(slots=True)
class Changes:
    """Successful calls that changed files."""

    calls: int = 0
    files: set[str] = field(default_factory=set)
    added: int = 0
    removed: int = 0

    def add(self, calls: int, paths: Iterable[str], added: int, removed: int) -> None:
        self.calls += calls
        self.files.update(paths)
        self.added += added
        self.removed += removed


@dataclass(slots=True)
class Edits:
    total: Changes = field(default_factory=Changes)
    tools: dict[str, Changes] = field(default_factory=dict)
    suffixes: dict[str, Changes] = field(default_factory=dict)  # `.py`
    turns: int = 0  # with a successful edit
    one_shot: int = 0  # of those, turns that edited no file again after a command
    cost_nano: int = 0  # of turns with an edit

    @property
    def one_shot_rate(self) -> float | None:
        return self.one_shot / self.turns if self.turns else None

    @property
    def cost_per_turn(self) -> float | None:
        return self.cost_nano / self.turns / 1e9 if self.turns else None


def read_edits(db: apsw.Connection, asked: Stats) -> Edits:
    found = Edits()
    for _, (edit_turns, one_shot, cost, changes) in parts.of(
        db, asked, EDITS_PART, edits_by_session
    ):
        found.turns += edit_turns
        found.one_shot += one_shot
        found.cost_nano += cost
        for tool, suffix, *changed in changes:
            found.total.add(*changed)
            for group, name in ((found.tools, tool), (found.suffixes, suffix)):
                if name not in group:
                    group[name] = Changes()
                group[name].add(*changed)
    for groups in (found.tools, found.suffixes):
        ordered = sorted(groups.items(), key=lambda group: (-group[1].calls, group[0]))
        groups.clear()
        groups.update(ordered)
    return found


def edits_by_session(db: apsw.Connection, asked: Stats) -> Counted:
    yield from _counted(db, asked, turns(db, asked))


def edits_and_turns(db: apsw.Connection, asked: Stats) -> Counted:
    """The same and what `interruptions` counts, of which both read every call."""
    each: defaultdict[int, list[list[int]]] = defaultdict(list)

    def noted() -> Iterator[Turn]:
        for one in turns(db, asked):
            each[one.session].append(interruptions.of_turn(one))
            yield one

    yield from _counted(db, asked, noted())
    for session, ones in each.items():
        yield session, {interruptions.TURNS_PART: ones}


def _counted(db: apsw.Connection, asked: Stats, all_turns: Iterator[Turn]) -> Counted:
    """Turns with an edit, those of them that edited no file again after a command, their cost; of
    each tool and suffix: calls, files, and lines added and removed."""
    paths, of = _edited(db, asked)
    changed = _changed(db, [*paths])
    groups: defaultdict[int, dict[tuple[str, str], Changes]] = defaultdict(dict)
    for event, files in paths.items():
        session, tool = of[event]
        suffix = os.path.splitext(files[0])[1].lower() or "none"
        groups[session].setdefault((tool, suffix), Changes()).add(
            1, files, *changed.get(event, (0, 0))
        )
    sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for one in all_turns:
        edited = set[str]()
        ran, again, any_edit = set[str](), False, False  # files edited before a command
        for call in one.calls:
            if call.event in paths:
                any_edit = True
                again = again or not ran.isdisjoint(paths[call.event])
                edited.update(paths[call.event])
            elif call.kind == kinds.SHELL:
                ran = set(edited)
        if any_edit:
            total = sums[one.session]
            total[0] += 1
            total[1] += not again
            total[2] += one.cost_nano
    for session, changes in groups.items():
        each = [
            [*names, one.calls, sorted(one.files), one.added, one.removed]
            for names, one in sorted(changes.items())
        ]
        yield session, {EDITS_PART: [*sums[session], each]}


def _edited(
    db: apsw.Connection, asked: Stats
) -> tuple[dict[int, Paths], dict[int, tuple[int, str]]]:
    """Paths, and session and tool, of each successful edit."""
    paths: dict[int, Paths] = {}
    of: dict[int, tuple[int, str]] = {}
    # Many edits share few files and tools: each name is kept once.
    known: dict[str, str] = {}
    together: dict[Paths, Paths] = {}
    wanted = scope.calls(db, asked, joins="CROSS JOIN files f ON f.event_id = e.id")
    for session, event, tool, path in db.execute(
        f"SELECT s.id, e.id, coalesce(e.tool, 'unknown'), f.path {wanted.sql} AND e.status = 'ok'"
        " AND f.action IN ('edit', 'write') ORDER BY e.id, f.path",
        wanted.values,
    ):
        if event not in paths:
            paths[event] = ()
            of[event] = session, known.setdefault(tool, tool)
        if path not in paths[event]:
            files = (*paths[event], path)
            paths[event] = together.setdefault(files, files)
    return paths, of


def _changed(db: apsw.Connection, calls: list[int]) -> dict[int, tuple[int, int]]:
    """Lines added and removed by each call, as diffs show them."""
    return {
        event: (added, removed)
        for event, added, removed in db.execute(
            "SELECT value, sum(d.added), sum(d.removed) FROM json_each(?)"
            " CROSS JOIN edits d ON d.event_id = value GROUP BY value",
            (json.dumps(calls),),
        )
    }


FILES_PART = "files"


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
    for _, touched in parts.of(db, asked, FILES_PART, files_by_session):
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


def files_by_session(db: apsw.Connection, asked: Stats) -> Counted:
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
        yield session, {FILES_PART: touched}


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
