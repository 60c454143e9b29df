"""Reads protobuf messages by field numbers, as far as they are valid."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_LONGEST_VARINT = 10


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and length-delimited values, up to the first invalid field."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire, number, size = tag & 7, 0, 0
        if wire == _VARINT:
            number, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        elif wire == _BYTES:
            size, at = _varint(data, at)
        else:
            return
        if tag < 8 or at + size > len(data):
            return
        if wire == _VARINT:
            yield tag >> 3, number
        elif wire == _BYTES:
            yield tag >> 3, data[at : at + size]
            at += size


def members(data: bytes, number: int) -> list[bytes]:
    """The length-delimited values of one field."""
    return [value for found, value in fields(data) if found == number and isinstance(value, bytes)]


def member(data: bytes, number: int) -> bytes | None:
    """The last value of a field, which is the one that counts."""
    found = members(data, number)
    return found[-1] if found else None


def text(data: bytes, number: int) -> str:
    return (member(data, number) or b"").decode("utf-8", "replace")


def whole_number(data: bytes, number: int) -> int | None:
    found = [value for one, value in fields(data) if one == number and isinstance(value, int)]
    return found[-1] if found else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the position after it, which is past the end if there is no number."""
    number = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(data))):
        number |= (data[place] & 0x7F) << shift
        if data[place] < 0x80:
            return number, place + 1
        shift += 7
    return 0, len(data) + 1
