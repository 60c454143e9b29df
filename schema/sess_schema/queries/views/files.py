"""What was changed: by tool, by type of file and by file, and how often one attempt was enough."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw

from sess_common import times
from sess_schema import kinds, marks
from sess_schema.ids import NO_EVENT, EventId, SessionId
from sess_schema.queries import fields
from sess_schema.queries.sessions import title_for
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import interruptions, parts, scope

EDITS_PART = "edits"
Paths = tuple[str, ...]
FILES_PART = "files"


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
    edits = Edits()
    for _, (edit_turns, one_shot, cost, changes) in parts.of(
        db, asked, EDITS_PART, edits_by_session
    ):
        edits.turns += edit_turns
        edits.one_shot += one_shot
        edits.cost_nano += cost
        for tool, suffix, *changed in changes:
            edits.total.add(*changed)
            for group, name in ((edits.tools, tool), (edits.suffixes, suffix)):
                group.setdefault(name, Changes()).add(*changed)
    for groups in (edits.tools, edits.suffixes):
        ordered = sorted(groups.items(), key=lambda group: (-group[1].calls, group[0]))
        groups.clear()
        groups.update(ordered)
    return edits


def edits_by_session(db: apsw.Connection, asked: Stats) -> parts.Counted:
    yield from _counted(db, asked, interruptions.turns(db, asked))


def edits_and_turns(db: apsw.Connection, asked: Stats) -> parts.Counted:
    """The same and what `interruptions` counts, of which both read every call."""
    counts: defaultdict[int, list[list[int]]] = defaultdict(list)

    def counted_turns() -> Iterator[interruptions.Turn]:
        for turn in interruptions.turns(db, asked):
            counts[turn.session].append(interruptions.counts_of(turn))
            yield turn

    yield from _counted(db, asked, counted_turns())
    for session, each in counts.items():
        yield session, {interruptions.TURNS_PART: each}


def _counted(
    db: apsw.Connection, asked: Stats, all_turns: Iterator[interruptions.Turn]
) -> parts.Counted:
    """Turns with an edit, those of them that edited no file again after a command, their cost; of
    each tool and suffix: calls, files, and lines added and removed."""
    paths, callers = _edited(db, asked)
    lines = _changed_lines(db, [*paths])
    groups: defaultdict[int, dict[tuple[str, str], Changes]] = defaultdict(dict)
    for event, files in paths.items():
        session, tool = callers[event]
        suffix = os.path.splitext(files[0])[1].lower() or "none"
        changes = groups[session].setdefault((tool, suffix), Changes())
        changes.add(1, files, *lines.get(event, (0, 0)))
    sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for turn in all_turns:
        edited = set[str]()
        ran, again, any_edit = set[str](), False, False  # files edited before a command
        for call in turn.calls:
            if call.event in paths:
                any_edit = True
                again = again or not ran.isdisjoint(paths[call.event])
                edited.update(paths[call.event])
            elif call.kind == kinds.SHELL:
                ran = set(edited)
        if any_edit:
            total = sums[turn.session]
            total[0] += 1
            total[1] += not again
            total[2] += turn.cost_nano
    for session, by_name in groups.items():
        each = [
            [*names, changes.calls, sorted(changes.files), changes.added, changes.removed]
            for names, changes in sorted(by_name.items())
        ]
        yield session, {EDITS_PART: [*sums[session], each]}


def _edited(
    db: apsw.Connection, asked: Stats
) -> tuple[dict[int, Paths], dict[int, tuple[int, str]]]:
    """Paths, and session and tool, of each successful edit."""
    paths: dict[int, Paths] = {}
    callers: dict[int, tuple[int, str]] = {}
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
            callers[event] = session, known.setdefault(tool, tool)
        if path not in paths[event]:
            files = (*paths[event], path)
            paths[event] = together.setdefault(files, files)
    return paths, callers


def _changed_lines(db: apsw.Connection, calls: list[int]) -> dict[int, tuple[int, int]]:
    """Lines added and removed by each call, as diffs show them."""
    return {
        event: (added, removed)
        for event, added, removed in db.execute(
            "SELECT value, sum(d.added), sum(d.removed) FROM json_each(?)"
            " CROSS JOIN edits d ON d.event_id = value GROUP BY value",
            (json.dumps(calls),),
        )
    }


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

    def add(self, path: str, action: str, ts: int | None, event: EventId) -> None:
        self.edits += action == "edit"
        self.writes += action == "write"
        self.reads += action == "read"
        self.paths.add(path)
        if ts is not None and (self.first is None or ts < self.first):
            self.first = ts
        if (ts or 0, event) >= (self.last or 0, self.event):
            self.last = ts if ts is not None else self.last
            self.event = event


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
    touched: dict[str, list[Any]] = {}
    for _, own in parts.of(db, asked, FILES_PART, files_by_session):
        for path, edits, writes, reads, first, last in own:
            counts = touched.setdefault(path, [0, 0, 0, first, last, 0])
            counts[0] += edits
            counts[1] += writes
            counts[2] += reads
            if first is not None:
                counts[3] = first if counts[3] is None else min(counts[3], first)
                counts[4] = last if counts[4] is None else max(counts[4], last)
            counts[5] += 1
    files = [File(path, *counts) for path, counts in touched.items()]
    return sorted(files, key=lambda file: (-file.changes, -file.reads, file.name))


def files_by_session(db: apsw.Connection, asked: Stats) -> parts.Counted:
    """Of each file: edits, writes and reads, and the first and last time of these."""
    touched: dict[SessionId, list[Any]] = {}
    wanted = scope.calls(db, asked, joins="CROSS JOIN files f ON f.event_id = e.id")
    edits, writes, reads = (f"sum(f.action = '{action}')" for action in ("edit", "write", "read"))
    for session, *counts in db.execute(
        f"SELECT s.id, f.path, {edits}, {writes}, {reads}, min(e.ts), max(e.ts) {wanted.sql}"
        " AND e.status = 'ok' GROUP BY s.id, f.path",
        wanted.values,
    ):
        touched.setdefault(session, []).append(counts)
    for session, files in touched.items():
        yield session, {FILES_PART: files}


def sessions_of(db: apsw.Connection, asked: Stats, path: str) -> list[Touched]:
    """The sessions that touched a file: a path, a name, the end of a path, or a glob."""
    which = fields.condition(db, "file", path, fields.Setting(now=times.now_ms()))
    like = _path_condition(path)
    wanted = scope.calls(db, asked, joins="JOIN files f ON f.event_id = e.id")
    sessions: dict[SessionId, Touched] = {}
    for key, name, title, project, *use in db.execute(
        f"SELECT s.id, s.native_id, {marks.title()}, s.project, f.path, f.action, e.ts, e.id"
        f" {wanted.sql} AND e.status = 'ok' AND {which.sql} AND {like.sql}",
        (*wanted.values, *which.values, *like.values),
    ):
        if key not in sessions:
            sessions[key] = Touched(name, title_for(db, key, title), project)
        sessions[key].add(*use)
    return sorted(sessions.values(), key=lambda touched: (-(touched.last or 0), touched.name))


def _path_condition(path: str) -> fields.Condition:
    """A call may also touch files that do not match."""
    name = path.removeprefix("./").lower()
    end = "/" + name.lstrip("/")
    return fields.Condition(
        "(lower(f.path) IN (?, ?) OR substr(lower(f.path), -?) = ? OR lower(f.path) GLOB ?"
        " OR lower(f.path) GLOB ?)",
        (name, path.lower(), len(end), end, name, f"*{end}"),
    )
