"""What was changed: files, lines, and whether the first try was the last."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import apsw

from sess_schema.queries.stats import Stats
from sess_schema.queries.views import inputs, kinds, scope
from sess_schema.queries.views.rounds import rounds

# Beyond this, lines are compared as a whole: a diff of two large texts takes seconds.
_MOST_COMPARED = 400
Paths = tuple[str, ...]
_OLD = ("oldstring", "oldstr", "oldtext")
_NEW = ("newstring", "newstr", "newtext")
_WHOLE = ("content", "contents", "filetext", "codeedit", "newsource")


@dataclass(slots=True)
class Changes:
    """Calls that changed files, and succeeded."""

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
    turns: int = 0  # with an edit that succeeded
    one_shot: int = 0  # of these, no file was edited again after a command
    cost_nano: int = 0  # of these

    @property
    def one_shot_rate(self) -> float | None:
        return self.one_shot / self.turns if self.turns else None

    @property
    def cost_per_turn(self) -> float | None:
        return self.cost_nano / self.turns / 1e9 if self.turns else None


def read(db: apsw.Connection, asked: Stats) -> Edits:
    found = Edits()
    paths, tools, places = _edited(db, asked)
    changed = {event: lines(given) for event, given in inputs.read(db, places)}
    places.clear()  # very many, and done with
    for event, files in paths.items():
        added, removed = changed.get(event, (0, 0))
        suffix = os.path.splitext(files[0])[1].lower() or "none"
        found.total.add(files, added, removed)
        found.tools.setdefault(tools[event], Changes()).add(files, added, removed)
        found.suffixes.setdefault(suffix, Changes()).add(files, added, removed)
    changed.clear()
    for one in rounds(db, asked):
        edited = set[str]()
        ran, again, any_edit = set[str](), False, False  # files that were edited before a command
        for call in one.calls:
            if call.event in paths:
                any_edit = True
                again = again or not ran.isdisjoint(paths[call.event])
                edited.update(paths[call.event])
            elif kinds.is_shell(call.tool):
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


def _edited(
    db: apsw.Connection, asked: Stats
) -> tuple[dict[int, Paths], dict[int, str], list[inputs.Place]]:
    """Paths and tool of each edit that succeeded, and where its input is."""
    paths: dict[int, Paths] = {}
    tools: dict[int, str] = {}
    places: list[inputs.Place] = []
    # Very many edits are of few files, with few tools: each name is kept once.
    known: dict[str, str] = {}
    together: dict[Paths, Paths] = {}
    wanted = scope.calls(
        db, asked, joins="JOIN files f ON f.event_id = e.id JOIN turns t ON t.id = e.turn_id"
    )
    for event, tool, path, pointer, source, retired, offset, length in db.execute(
        "SELECT e.id, coalesce(e.tool, 'unknown'), f.path, e.pointer, t.source_id, t.retired,"
        f" t.offset, t.length {wanted.sql} AND e.status = 'ok' AND f.action IN ('edit', 'write')"
        " ORDER BY e.id, f.path",
        wanted.values,
    ):
        if event not in paths:
            paths[event] = ()
            tools[event] = known.setdefault(tool, tool)
            if pointer is not None:
                kept = known.setdefault(pointer, pointer)
                places.append(inputs.Place(source, retired, offset, length, kept, event))
        if path not in paths[event]:
            files = (*paths[event], path)
            paths[event] = together.setdefault(files, files)
    return paths, tools, places


def lines(given: Any) -> tuple[int, int]:
    """How many lines an input adds and removes, as far as it tells."""
    if isinstance(given, str):
        return _of_patch(given)
    if not isinstance(given, dict):
        return 0, 0
    named = {kinds.bare(str(name)): value for name, value in given.items()}
    several = named.get("edits")
    if isinstance(several, list):
        each = [lines(one) for one in several if isinstance(one, dict)]
        return sum(one[0] for one in each), sum(one[1] for one in each)
    old = next((named[name] for name in _OLD if isinstance(named.get(name), str)), None)
    new = next((named[name] for name in _NEW if isinstance(named.get(name), str)), None)
    if old is not None or new is not None:
        return _replaced(old or "", new or "")
    for name in _WHOLE:
        if isinstance(named.get(name), str):
            return len(named[name].splitlines()), 0
    patches = [value for value in named.values() if isinstance(value, str)]
    return next((found for text in patches if any(found := _of_patch(text))), (0, 0))


def _replaced(old: str, new: str) -> tuple[int, int]:
    """Lines that differ, without what both begin and end with."""
    before, after = old.splitlines(), new.splitlines()
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    before, after = before[same:], after[same:]
    while before and after and before[-1] == after[-1]:
        before.pop()
        after.pop()
    if before and after and len(before) + len(after) <= _MOST_COMPARED:
        from difflib import SequenceMatcher  # noqa: PLC0415 - often all lines differ

        if set(before) & set(after):
            matcher = SequenceMatcher(None, before, after, autojunk=False)
            equal = sum(block.size for block in matcher.get_matching_blocks())
            return len(after) - equal, len(before) - equal
    return len(after), len(before)


def _of_patch(text: str) -> tuple[int, int]:
    """Of a patch in the `*** Begin Patch` or the unified form."""
    if "*** Begin Patch" not in text and "\n@@ " not in text:
        return 0, 0
    added = removed = 0
    for line in text.splitlines():
        if line.startswith("+") and not line.startswith("+++ "):
            added += 1
        elif line.startswith("-") and not line.startswith("--- "):
            removed += 1
    return added, removed
