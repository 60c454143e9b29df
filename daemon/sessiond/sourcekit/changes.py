"""Reads edits from the arguments of a call: most agents use one of a few names."""

from __future__ import annotations

from typing import Any

from sess_schema.calls import CONTENTS, NEW, OLD, PATCHES, named, text_in
from sess_schema.edits import Edit
from sessiond.sourcekit.patches import edits_of_patch

_MOST_EDITS = 1000
_MOST_LINES = 10**9


def edits_of_arguments(path: str, given: dict[str, Any]) -> tuple[Edit, ...]:
    """The edits that a call with these arguments makes; `path` is the file they name."""
    fields = named(given)
    several = fields.get("edits")
    if isinstance(several, list):
        edits = (_replaced(path, named(one)) for one in several[:_MOST_EDITS])
        return tuple(edit for edit in edits if edit is not None)
    replaced = _replaced(path, fields)
    if replaced is not None:
        return (replaced,)
    for name in PATCHES:
        if isinstance(fields.get(name), str) and (patched := edits_of_patch(fields[name], path)):
            return patched
    whole = text_in(fields, *CONTENTS)
    return (Edit(path, new=whole),) if whole is not None and path else ()


def _replaced(path: str, fields: dict[str, Any]) -> Edit | None:
    old, new = text_in(fields, *OLD), text_in(fields, *NEW)
    if not path or (old is None and new is None):
        return None
    return Edit(path, old or "", new or "")


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
