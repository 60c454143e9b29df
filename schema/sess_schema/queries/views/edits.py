"""Changed files and lines, and how often the first attempt was enough."""

from __future__ import annotations

import os
from collections.abc import Iterable

import apsw

from sess_schema import kinds
from sess_schema.classes import dataclass, field
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import scope
from sess_schema.queries.views.turns import turns

Paths = tuple[str, ...]


@dataclass(slots=True)
class Changes:
    """Successful calls that changed files."""

    calls: int = 0
    files: set[str] = field(default_factory=set)
    added: int = 0
    removed: int = 0

    def add(self, paths: Iterable[str], added: int, removed: int) -> None:
        self.calls += 1
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


def read(db: apsw.Connection, asked: Stats) -> Edits:
    found = Edits()
    paths, tools = _edited(db, asked)
    changed = _changed(db, asked)
    for event, files in paths.items():
        added, removed = changed.get(event, (0, 0))
        suffix = os.path.splitext(files[0])[1].lower() or "none"
        found.total.add(files, added, removed)
        for group, name in ((found.tools, tools[event]), (found.suffixes, suffix)):
            if name not in group:
                group[name] = Changes()
            group[name].add(files, added, removed)
    changed.clear()
    for one in turns(db, asked):
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
            found.turns += 1
            found.one_shot += not again
            found.cost_nano += one.cost_nano
    for groups in (found.tools, found.suffixes):
        ordered = sorted(groups.items(), key=lambda group: (-group[1].calls, group[0]))
        groups.clear()
        groups.update(ordered)
    return found


def _edited(db: apsw.Connection, asked: Stats) -> tuple[dict[int, Paths], dict[int, str]]:
    """Paths and tool of each successful edit."""
    paths: dict[int, Paths] = {}
    tools: dict[int, str] = {}
    # Many edits share few files and tools: each name is kept once.
    known: dict[str, str] = {}
    together: dict[Paths, Paths] = {}
    wanted = scope.calls(db, asked, joins="JOIN files f ON f.event_id = e.id")
    for event, tool, path in db.execute(
        f"SELECT e.id, coalesce(e.tool, 'unknown'), f.path {wanted.sql} AND e.status = 'ok'"
        " AND f.action IN ('edit', 'write') ORDER BY e.id, f.path",
        wanted.values,
    ):
        if event not in paths:
            paths[event] = ()
            tools[event] = known.setdefault(tool, tool)
        if path not in paths[event]:
            files = (*paths[event], path)
            paths[event] = together.setdefault(files, files)
    return paths, tools


def _changed(db: apsw.Connection, asked: Stats) -> dict[int, tuple[int, int]]:
    """Lines added and removed by each call, as diffs show them."""
    wanted = scope.calls(db, asked, joins="JOIN edits d ON d.event_id = e.id")
    return {
        event: (added, removed)
        for event, added, removed in db.execute(
            f"SELECT e.id, sum(d.added), sum(d.removed) {wanted.sql} AND e.status = 'ok'"
            " GROUP BY e.id",
            wanted.values,
        )
    }
