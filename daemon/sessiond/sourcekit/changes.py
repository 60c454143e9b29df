"""Reads edits from the arguments of a call: most agents use one of a few names."""

from __future__ import annotations

from typing import Any

from sess_schema.edits import Edit
from sessiond.sourcekit.patches import edits_of_patch

_OLD = ("old_string", "oldString", "old_str", "oldStr", "old_text", "oldText")
_NEW = ("new_string", "newString", "new_str", "newStr", "new_text", "newText")
_WHOLE = (
    *("content", "contents", "file_text", "fileText", "code_edit", "codeEdit", "new_source"),
    *("newSource",),
)
_PATCHES = ("patch", "input", "diff", "patch_text", "patchText")
_MOST_EDITS = 1000
_MOST_LINES = 10**9


def bare(name: str) -> str:
    """One spelling for `target_file`, `targetFile` and `TargetFile`."""
    return name.replace("_", "").replace("-", "").casefold()


def edits_of_arguments(path: str, given: dict[str, Any]) -> tuple[Edit, ...]:
    """The edits that a call with these arguments makes; `path` is the file they name."""
    several = given.get("edits")
    if isinstance(several, list):
        found = (_replaced(path, one) for one in several[:_MOST_EDITS] if isinstance(one, dict))
        return tuple(edit for edit in found if edit is not None)
    replaced = _replaced(path, given)
    if replaced is not None:
        return (replaced,)
    for name in _PATCHES:
        if isinstance(given.get(name), str) and (patched := edits_of_patch(given[name], path)):
            return patched
    whole = _text(given, _WHOLE)
    return (Edit(path, new=whole),) if whole is not None and path else ()


def _replaced(path: str, given: dict[str, Any]) -> Edit | None:
    old, new = _text(given, _OLD), _text(given, _NEW)
    if not path or (old is None and new is None):
        return None
    return Edit(path, old or "", new or "")


def _text(given: dict[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        text = given.get(name)
        if isinstance(text, str):
            return text
    return None


def as_hunk(value: Any) -> dict[str, Any] | None:
    """A hunk of a structured patch, reduced to what diffs need."""
    lines = value.get("lines") if isinstance(value, dict) else None
    if not isinstance(lines, list):
        return None
    return {
        "oldStart": _line_number(value.get("oldStart")),
        "newStart": _line_number(value.get("newStart")),
        "lines": [line for line in lines if isinstance(line, str)],
    }


def _line_number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < _MOST_LINES else 1
