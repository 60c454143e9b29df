"""Changed files and lines, and how often the first attempt was enough."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import apsw

from sess_schema import kinds
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import interruptions, parts, scope
from sess_schema.queries.views.parts import Counted
from sess_schema.queries.views.turns import Turn, turns

PART = "edits"
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


def read(db: apsw.Connection, asked: Stats) -> Edits:
    found = Edits()
    for _, (edit_turns, one_shot, cost, changes) in parts.of(db, asked, PART, by_session):
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


def by_session(db: apsw.Connection, asked: Stats) -> Counted:
    yield from _counted(db, asked, turns(db, asked))


def with_turns(db: apsw.Connection, asked: Stats) -> Counted:
    """The same and what `interruptions` counts, of which both read every call."""
    each: defaultdict[int, list[list[int]]] = defaultdict(list)

    def noted() -> Iterator[Turn]:
        for one in turns(db, asked):
            each[one.session].append(interruptions.of_turn(one))
            yield one

    yield from _counted(db, asked, noted())
    for session, ones in each.items():
        yield session, {interruptions.PART: ones}


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
        yield session, {PART: [*sums[session], each]}


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
