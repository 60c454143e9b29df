"""The inputs of many calls as agents wrote them, read in the order of the archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apsw

from sess_schema import archive, decode


class Place(NamedTuple):
    """Where the record of a call is; sorted places are in the order of the archive."""

    source: int
    retired: int
    offset: int
    length: int
    pointer: str
    event: int


def read(db: apsw.Connection, places: Iterable[Place]) -> Iterator[tuple[int, Any]]:
    """(event, input); what cannot be found any more is left out."""
    reader = _Archive(db)
    for place in sorted(places):
        raw = reader.record(place)
        for piece in decode.split_line(raw.rstrip(b"\r\n")):
            value = None if piece.broken else decode.at_pointer(piece.value, place.pointer)
            if value is not None:
                yield place.event, _unwrapped(value)
                break


class _Archive:
    """Unpacks each piece of a source once for all records in it."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._at = (-1, -1, 0, 0)  # source, retired, start, end
        self._raw = b""

    def record(self, place: Place) -> bytes:
        source, retired, start, end = self._at
        last = place.offset + place.length
        if (place.source, place.retired) != (source, retired) or not (
            start <= place.offset and last <= end
        ):
            self._load(place)
            source, retired, start, end = self._at
            if not (start <= place.offset and last <= end):  # it goes over the end of a piece
                return archive.record_bytes(self._db, *place[:4])
        return self._raw[place.offset - start : last - start]

    def _load(self, place: Place) -> None:
        self._at = (-1, -1, 0, 0)
        for start, length, packed in self._db.execute(
            "SELECT offset, length, data FROM chunks WHERE source_id = ? AND retired = ?"
            " AND offset <= ? ORDER BY offset DESC LIMIT 1",
            (place.source, place.retired, place.offset),
        ):
            self._raw = archive.unpack(packed)
            self._at = (place.source, place.retired, start, start + length)


def _unwrapped(value: Any) -> Any:
    """Some agents keep arguments as JSON in a string."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return decode.decode(value.encode("utf-8", "replace"))[0]
        except ValueError:
            return value
    return value
