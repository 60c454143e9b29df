"""Edits by the names that agents give their arguments: most use one of a few."""

from __future__ import annotations

from typing import Any

from sess_schema.edits import Edit
from sessiond.sourcekit.patches import edits_of_patch

_OLD = ("oldstring", "oldstr", "oldtext")
_NEW = ("newstring", "newstr", "newtext")
_WHOLE = ("content", "contents", "filetext", "codeedit", "newsource")
_PATCHES = ("patch", "input", "diff", "patchtext")
_MOST_EDITS = 1000
_MOST_LINES = 10**9


def bare(name: str) -> str:
    """The same name, whether it was `target_file`, `targetFile` or `TargetFile`."""
    return name.replace("_", "").replace("-", "").casefold()


def edits_of_arguments(path: str, given: dict[str, Any]) -> tuple[Edit, ...]:
    """What a call with these arguments changes; `path` is the file that they name."""
    return _edits(path, {bare(name): value for name, value in given.items()})


def as_hunk(told: Any) -> dict[str, Any] | None:
    """A stretch of a structured patch, with nothing but what diffs are drawn from."""
    lines = told.get("lines") if isinstance(told, dict) else None
    if not isinstance(lines, list):
        return None
    return {
        "oldStart": _line_number(told.get("oldStart")),
        "newStart": _line_number(told.get("newStart")),
        "lines": [line for line in lines if isinstance(line, str)],
    }


def _line_number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < _MOST_LINES else 1


def _edits(path: str, named: dict[str, Any]) -> tuple[Edit, ...]:
    several = named.get("edits")
    if isinstance(several, list):
        members = (
            {bare(name): value for name, value in one.items()}
            for one in several[:_MOST_EDITS]
            if isinstance(one, dict)
        )
        found = (_replaced(path, one) for one in members)
        return tuple(edit for edit in found if edit is not None)
    replaced = _replaced(path, named)
    if replaced is not None:
        return (replaced,)
    for name in _PATCHES:
        if isinstance(named.get(name), str) and (patched := edits_of_patch(named[name], path)):
            return patched
    whole = next((named[name] for name in _WHOLE if isinstance(named.get(name), str)), None)
    return (Edit(path, new=whole),) if whole is not None and path else ()


def _replaced(path: str, named: dict[str, Any]) -> Edit | None:
    old = next((named[name] for name in _OLD if isinstance(named.get(name), str)), None)
    new = next((named[name] for name in _NEW if isinstance(named.get(name), str)), None)
    if not path or (old is None and new is None):
        return None
    return Edit(path, old or "", new or "")
