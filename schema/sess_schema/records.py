"""Records as the agent wrote them, read from the archive."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import apsw

from sess_common import decode
from sess_schema import archive, losses
from sess_schema.ids import SourceId

_KEPT = 6  # unpacked chunks of about a megabyte: a result is rarely far from its call
_MOST_KEPT = 8 << 20  # bytes; the line of a document may be one chunk of any size
_DEEPEST = 100  # levels of nesting that readers can handle


class RecordReader:
    """Reads single records; neighbours share one unpacked chunk."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._chunks: OrderedDict[int, bytes] = OrderedDict()
        self._places: dict[tuple[int, int], tuple[list[int], list[tuple[int, int]]]] = {}
        self._last: tuple[tuple[int, ...], list[Any]] = ((), [])
        self.damaged: set[int] = set()  # chunks that could not be read

    def bytes_of(self, place: Sequence[int]) -> bytes:
        """`place`: source, retired, offset, length."""
        retired, offset, length = place[1:]
        source = SourceId(place[0])
        starts, chunks = self._chunks_of(source, retired)
        at = max(0, bisect_right(starts, offset) - 1)
        slices = []
        while at < len(starts) and starts[at] < offset + length:
            start, (key, size) = starts[at], chunks[at]
            if start + size > offset:
                raw = self._unpacked(key, size)
                slices.append(raw[max(0, offset - start) : min(size, offset + length - start)])
            at += 1
        raw = slices[0] if len(slices) == 1 else b"".join(slices)
        if len(raw) < length and retired == archive.LIVE:
            self._miss(source, offset)
        return raw

    def _miss(self, source: SourceId, offset: int) -> None:
        """No piece has these bytes."""
        if not losses.is_accepted(self._db, source, offset):
            raise archive.Damaged

    def _chunks_of(self, source: SourceId, retired: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Where the chunks of a source start, and (id, length) of each."""
        found = self._places.get((source, retired))
        if found is None:
            rows: list[tuple[Any, ...]] = self._db.execute(
                "SELECT offset, id, length FROM chunks WHERE source_id = ? AND retired = ?"
                " ORDER BY offset",
                (source, retired),
            ).fetchall()
            found = [row[0] for row in rows], [(row[1], row[2]) for row in rows]
            self._places[source, retired] = found
        return found

    def value(self, place: Sequence[int], pointer: str) -> Any:
        """The value in a record that a JSON pointer leads to, or None.

        Objects that several pointers, one per line, lead to are joined.
        """
        try:
            values = self._values(tuple(place))
        except archive.Damaged:
            return None
        for value in values:
            places = (decode.at_pointer(value, one) for one in pointer.split("\n"))
            found = _joined([unwrapped(one) for one in places])
            if found is not None and not is_too_deep(found):
                return found
        return None

    def _values(self, place: tuple[int, ...]) -> list[Any]:
        if self._last[0] != place:
            raw = self.bytes_of(place).rstrip(b"\r\n")
            pieces = decode.split_line(raw)
            self._last = (place, [piece.value for piece in pieces if not piece.broken])
        return self._last[1]

    def _unpacked(self, key: int, size: int) -> bytes:
        if key in self._chunks:
            self._chunks.move_to_end(key)
            return self._chunks[key]
        try:
            raw = self._chunks[key] = archive.stored(self._db, key, size)
        except archive.Damaged:
            self.damaged.add(key)
            raise
        while len(self._chunks) > _KEPT or (
            len(self._chunks) > 1 and sum(map(len, self._chunks.values())) > _MOST_KEPT
        ):
            self._chunks.popitem(last=False)
        return raw


def is_too_deep(value: Any, left: int = _DEEPEST) -> bool:
    if isinstance(value, dict):
        return left == 0 or any(is_too_deep(inner, left - 1) for inner in value.values())
    if isinstance(value, list):
        return left == 0 or any(is_too_deep(inner, left - 1) for inner in value)
    return False


def _joined(values: Sequence[Any]) -> Any:
    """The first value; if it is an object, with what the other objects have under other names."""
    first, *others = values
    if not isinstance(first, dict):
        return first
    for other in others:
        known = {_bare(name) for name in first}
        if isinstance(other, dict):
            first = first | {k: v for k, v in other.items() if _bare(k) not in known}
    return first


def _bare(name: str) -> str:
    """One spelling for `target_file` and `targetFile`."""
    return name.replace("_", "").casefold()


def unwrapped(value: Any) -> Any:
    """Decodes arguments that some agents store as JSON in a string."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return decode.decode(value.encode("utf-8", "replace"))[0]
        except ValueError:
            return value
    return value
