"""What a call changed in a file: one form for all agents, stored, counted and drawn."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from sess_schema import archive

if TYPE_CHECKING:
    import apsw

    from sess_common.differ import Counts, DiffLine
    from sess_schema.ids import EventId


Hunks = tuple[dict[str, Any], ...]


@dataclass(slots=True, frozen=True)
class Edit:
    """One change to one file: a replaced text, or a patch.

    A new file has no `old`. `hunks` come from the result and cover the whole file: oldStart,
    newStart and signed lines. They are stored with the first edit of a call and cover all of the
    call's edits to the same file.
    """

    path: str
    old: str | None = None
    new: str | None = None
    patch: str | None = None
    hunks: Hunks = ()


def with_hunks(edits: Sequence[Edit], hunks: Hunks) -> tuple[Edit, ...]:
    """The edits of a call once its result is known; the result itself names no file."""
    if not hunks:
        return tuple(edits)
    return (replace(edits[0], hunks=hunks), *edits[1:]) if edits else (Edit("", hunks=hunks),)


def without_hunks(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits of a call whose result was removed again."""
    if not hunks_of(edits):
        return tuple(edits)
    return (replace(edits[0], hunks=()), *edits[1:]) if edits[0].path else ()


def hunks_of(edits: Sequence[Edit]) -> Hunks:
    return edits[0].hunks if edits else ()


def shown(edits: Sequence[Edit]) -> list[Edit]:
    """The edits to draw: hunks cover every edit to their file."""
    return [edit for edit in edits if not _is_covered(edit, edits)]


def _is_covered(edit: Edit, edits: Sequence[Edit]) -> bool:
    first = edits[0]
    return bool(first.hunks) and edit is not first and edit.path == first.path


def lines(edit: Edit, context: int | None = 3) -> list[DiffLine]:
    """The diff of one edit, with line numbers where known."""
    from sess_common import differ  # most passes see no edit

    if edit.hunks:
        return differ.from_hunks(edit.hunks)
    if edit.patch is not None:
        return differ.from_patch(edit.patch)
    return differ.between(edit.old or "", edit.new or "", context=context)


def count(edits: Sequence[Edit]) -> list[Counts]:
    """Lines added and removed by each edit; the sum matches what `shown` draws."""
    from sess_common.differ import Counts  # most passes see no edit

    return [Counts(0, 0) if _is_covered(edit, edits) else _count(edit) for edit in edits]


def _count(edit: Edit) -> Counts:
    from sess_common import differ

    if edit.hunks:
        return differ.count_hunks(edit.hunks)
    if edit.patch is not None:
        return differ.count_patch(edit.patch)
    return differ.count_between(edit.old or "", edit.new or "")


# -- in the index


def pack(edit: Edit) -> bytes:
    """For `edits.data`."""
    fields = {"old": edit.old, "new": edit.new, "patch": edit.patch, "hunks": [*edit.hunks] or None}
    return archive.pack(
        orjson.dumps({name: value for name, value in fields.items() if value is not None})
    )


def unpack(path: str, data: bytes) -> Edit:
    fields = orjson.loads(archive.unpack(data))
    hunks = tuple(fields.pop("hunks", ()))
    return Edit(path, hunks=hunks, **fields)


def of_event(db: apsw.Connection, event: EventId) -> list[Edit]:
    rows = db.execute("SELECT path, data FROM edits WHERE event_id = ? ORDER BY number", (event,))
    edits = []
    for path, data in rows:
        with contextlib.suppress(archive.Damaged):  # the call is shown without its diff
            edits.append(unpack(path, data))
    return edits
