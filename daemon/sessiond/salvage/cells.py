"""The rows in a leaf page of a table."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from sessiond.salvage.pages import Pages

_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_MOST_COLUMNS = 200


class Row(NamedTuple):
    """`lost`: the last value is missing, because its overflow pages are."""

    id: int
    values: list[Any]
    lost: bool = False


def rows(pages: Pages, number: int, page: bytes) -> Iterator[Row]:
    """Every row of a leaf page that can be read; a damaged one does not hide the others."""
    base = 100 if number == 1 else 0
    (many,) = struct.unpack_from(">H", page, base + 3)
    room = (pages.usable - base - 8) // 2
    for index in range(min(many, room)):
        (at,) = struct.unpack_from(">H", page, base + 8 + 2 * index)
        if not base + 8 <= at < pages.usable:
            continue
        try:
            row = _row(pages, page, at)
        except (IndexError, struct.error, ValueError):
            continue
        if row is not None:
            yield row


def _row(pages: Pages, page: bytes, at: int) -> Row | None:
    length, at = _varint(page, at)
    row_id, at = _varint(page, at)
    if not 0 < length < 1 << 31:
        return None
    local = _local_size(pages.usable, length)
    payload = page[at : at + local]
    if len(payload) < local:
        return None
    lost = False
    if local < length:
        (first,) = struct.unpack_from(">I", page, at + local)
        more = pages.overflow(first, length - local)
        lost = more is None
        payload += more or b""
    values = _values(payload, length, lost=lost)
    if values is None:
        return None
    return Row(row_id - (1 << 64) if row_id >> 63 else row_id, values, lost)


def _local_size(usable: int, length: int) -> int:
    """How many bytes of a payload are on the leaf itself."""
    if length <= usable - 35:
        return length
    least = (usable - 12) * 32 // 255 - 23
    local = least + (length - least) % (usable - 4)
    return local if local <= usable - 35 else least


def _values(payload: bytes, length: int, *, lost: bool) -> list[Any] | None:
    """The columns of a record; with a lost end, those before it, then None."""
    header, at = _varint(payload, 0)
    if not 1 < header <= min(length, len(payload)):
        return None
    types = []
    while at < header:
        serial, at = _varint(payload, at)
        types.append(serial)
    if at != header or len(types) > _MOST_COLUMNS:
        return None
    if header + sum(map(_width, types)) != length:
        return None
    values: list[Any] = []
    for serial in types:
        width = _width(serial)
        raw = payload[at : at + width]
        at += width
        if len(raw) < width:
            if not lost:
                return None
            values.append(None)
        else:
            values.append(_value(serial, raw))
    return values


def _width(serial: int) -> int:
    if serial >= 12:
        return (serial - 12) // 2
    if serial in (10, 11):
        raise ValueError
    return 8 if serial == 7 else _WIDTHS.get(serial, 0)


def _value(serial: int, raw: bytes) -> Any:
    if serial >= 12:
        return raw if serial % 2 == 0 else raw.decode("utf-8", "replace")
    if serial == 7:
        return struct.unpack(">d", raw)[0]
    if serial in _WIDTHS:
        return int.from_bytes(raw, "big", signed=True)
    return {8: 0, 9: 1}.get(serial)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = raw[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | raw[at], at + 1
