"""Reads protobuf without its schema: fields by number, as far as they are valid."""

from __future__ import annotations

from collections.abc import Iterator

_NUMBER, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # how a value is written
_SIZES = {_EIGHT: 8, _FOUR: 4}
_LONGEST_NUMBER = 10  # bytes
_LARGEST_FIELD = 1 << 29
_DEEPEST = 16


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of variable length, up to the first invalid field."""
    return iter(_read(data)[0])


def members(data: bytes, field: int) -> list[bytes]:
    """The values of variable length of one field."""
    return [value for number, value in fields(data) if number == field and isinstance(value, bytes)]


def member(data: bytes, field: int) -> bytes | None:
    """The last value of a field, which is the one that counts."""
    return next(reversed(members(data, field)), None)


def text_of(data: bytes, field: int) -> str:
    return (member(data, field) or b"").decode("utf-8", "replace")


def whole_number(data: bytes, field: int) -> int | None:
    numbers = [value for number, value in fields(data) if number == field]
    return next((value for value in reversed(numbers) if isinstance(value, int)), None)


class Message:
    """The fields of a message; those of a damaged one up to the damage."""

    def __init__(self, data: object = b"") -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        values, self.whole = _read(data) if isinstance(data, bytes) else ([], True)
        for field, value in values:
            self._fields.setdefault(field, []).append(value)

    def number(self, field: int) -> int | None:
        value = self._fields.get(field, (None,))[0]
        return value if isinstance(value, int) else None

    def blobs(self, field: int) -> list[bytes]:
        return [value for value in self._fields.get(field, ()) if isinstance(value, bytes)]

    def text(self, *path: int) -> str:
        """The text of a field, or of one in messages inside each other."""
        message = self
        for field in path[:-1]:
            message = message.message(field)
        blobs = message.blobs(path[-1])
        return blobs[0].decode("utf-8", "replace") if blobs else ""

    def message(self, field: int) -> Message:
        blobs = self.blobs(field)
        return Message(blobs[0] if blobs else b"")

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


def _read(data: bytes) -> tuple[list[tuple[int, int | bytes]], bool]:
    """The fields, and whether all of the data could be read; values of fixed size are left out."""
    values: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        field, kind = key >> 3, key & 7
        if at < 0 or not 0 < field < _LARGEST_FIELD:
            return values, False
        size = number = 0
        if kind == _NUMBER:
            number, at = _number(data, at)
        elif kind == _BYTES:
            size, at = _number(data, at)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            return values, False
        if at < 0 or at + size > len(data):
            return values, False
        if kind not in _SIZES:
            values.append((field, number if kind == _NUMBER else data[at : at + size]))
        at += size
    return values, True


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
