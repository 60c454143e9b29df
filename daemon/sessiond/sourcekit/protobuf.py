"""Reads protobuf without its schema: fields by number, as far as they are valid."""

from __future__ import annotations

from collections.abc import Iterator

_NUMBER, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_LONGEST_NUMBER = 10  # bytes
_LARGEST_FIELD = 1 << 29
_DEEPEST = 16


class Message:
    """The fields of a message; those of a damaged one up to the damage."""

    def __init__(self, data: object = b"") -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        self.whole = True
        if isinstance(data, bytes):
            self.whole = self._read(data)

    def _read(self, data: bytes) -> bool:
        at = 0
        while at < len(data):
            key, at = _number(data, at)
            field, kind = key >> 3, key & 7
            if at < 0 or not 0 < field < _LARGEST_FIELD:
                return False
            value: int | bytes
            if kind == _NUMBER:
                value, at = _number(data, at)
                if at < 0:
                    return False
            elif kind in (_EIGHT, _FOUR, _BYTES):
                size = 8 if kind == _EIGHT else 4
                if kind == _BYTES:
                    size, at = _number(data, at)
                if at < 0 or at + size > len(data):
                    return False
                value, at = data[at : at + size], at + size
            else:
                return False
            self._fields.setdefault(field, []).append(value)
        return True

    def number(self, field: int) -> int | None:
        found = self._fields.get(field, (None,))[0]
        return found if isinstance(found, int) else None

    def blobs(self, field: int) -> list[bytes]:
        return [value for value in self._fields.get(field, ()) if isinstance(value, bytes)]

    def text(self, *path: int) -> str:
        """The text of a field, or of one in messages inside each other."""
        message = self
        for field in path[:-1]:
            message = message.message(field)
        found = message.blobs(path[-1])
        return found[0].decode("utf-8", "replace") if found else ""

    def message(self, field: int) -> Message:
        found = self.blobs(field)
        return Message(found[0] if found else b"")

    def messages(self, field: int) -> list[Message]:
        return [Message(blob) for blob in self.blobs(field)]

    def has(self, field: int) -> bool:
        return field in self._fields

    def time(self, field: int) -> int | None:
        """Milliseconds of a `google.protobuf.Timestamp`."""
        stamp = self.message(field)
        seconds = stamp.number(1)
        return seconds * 1000 + (stamp.number(2) or 0) // 1_000_000 if seconds else None

    def texts(self, depth: int = 0) -> Iterator[str]:
        """All that reads as text, also in messages inside."""
        for field in sorted(self._fields):
            for blob in self.blobs(field):
                if plain := _plain(blob):
                    yield plain
                elif depth < _DEEPEST and (inner := Message(blob)).whole:
                    yield from inner.texts(depth + 1)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; a negative place if it does not."""
    value = 0
    for length in range(_LONGEST_NUMBER):
        if at + length >= len(data):
            break
        byte = data[at + length]
        value |= (byte & 0x7F) << (7 * length)
        if byte < 0x80:
            return value, at + length + 1
    return 0, -1


def _plain(blob: bytes) -> str:
    try:
        text = blob.decode()
    except UnicodeDecodeError:
        return ""
    return text if all(one.isprintable() or one in "\n\r\t" for one in text) else ""


_VARINT, _FIXED64, _BYTES_WIRE, _FIXED32 = 0, 1, 2, 5  # wire types
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
        elif wire == _BYTES_WIRE:
            size, at = _varint(data, at)
        else:
            return
        if tag < 8 or at + size > len(data):
            return
        if wire == _VARINT:
            yield tag >> 3, number
        elif wire == _BYTES_WIRE:
            yield tag >> 3, data[at : at + size]
            at += size


def members(data: bytes, number: int) -> list[bytes]:
    """The length-delimited values of one field."""
    return [value for found, value in fields(data) if found == number and isinstance(value, bytes)]


def member(data: bytes, number: int) -> bytes | None:
    """The last value of a field, which is the one that counts."""
    found = members(data, number)
    return found[-1] if found else None


def text_of(data: bytes, number: int) -> str:
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
