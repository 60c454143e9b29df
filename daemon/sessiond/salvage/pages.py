"""The pages of a database file, with the committed pages of its WAL over them, and their rows."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from sess_schema import page_sums
from sess_schema.page_sums import WAL_MAGIC

_MAGIC = b"SQLite format 3\0"
_SIZES = tuple(512 << power for power in range(8))
_BLOCK = max(_SIZES)
_SAMPLE = 256  # blocks that are looked at to find the size of pages
_TREE_PAGES = (0x02, 0x05, 0x0A, 0x0D)
_WAL_HEADER = 32
LEAF, INDEX_LEAF = 0x0D, 0x0A  # pages with rows of a table, and with entries of an index
_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_MOST_COLUMNS = 200


class Pages:
    """Reads the pages of a database and follows overflow chains."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        head = os.pread(self._fd, 100, 0)
        self.size = _named_size(head) or self._likely_size() or _size_in_log(path) or 4096
        self._log, frames = self._read_log(path + "-wal")
        self._frames = {frame.page: frame for frame in page_sums.committed(frames)}
        in_file = -(-os.fstat(self._fd).st_size // self.size)
        self.count = max([in_file, *self._frames])
        reserved = head[20] if head.startswith(_MAGIC) and head[20] < 128 else 0
        self.summed = reserved == page_sums.BYTES or self._look_summed(in_file)
        self.usable = self.size - (page_sums.BYTES if self.summed else reserved)

    def close(self) -> None:
        os.close(self._fd)
        if self._log is not None:
            os.close(self._log)

    def page(self, number: int) -> bytes:
        """One page, padded with zeros where the file ends early; pages count from 1."""
        if self._log is not None and number in self._frames:
            raw = os.pread(self._log, self.size, self._frames[number].offset)
        else:
            raw = os.pread(self._fd, self.size, (number - 1) * self.size)
        return raw.ljust(self.size, b"\0")

    def is_sound(self, number: int) -> bool:
        """Whether a page is what was written, as far as its checksum tells."""
        if number in self._frames:
            return self._frames[number].sound
        return not self.summed or page_sums.is_sound(self.page(number), number - 1)

    def _look_summed(self, in_file: int) -> bool:
        """Whether pages have checksums, where the header that says so is lost."""
        looked = range(1, in_file, -(-in_file // _SAMPLE) or 1)
        sound = (any(raw := self.page(at + 1)) and page_sums.is_sound(raw, at) for at in looked)
        return sum(sound) * 2 > len(looked)

    def leaves(self) -> Iterator[tuple[int, bytes]]:
        """Every page that looks like a leaf of a table or of an index, reachable or not."""
        for number in range(1, self.count + 1):
            raw = self.page(number)
            if raw[100 if number == 1 else 0] in (LEAF, INDEX_LEAF):
                yield number, raw

    def overflow(self, first: int, length: int) -> bytes | None:
        """The bytes of a chain of overflow pages; None if it leads nowhere."""
        pieces, left, number = list[bytes](), length, first
        room = self.usable - 4
        for _ in range(-(-length // room)):
            if not 1 < number <= self.count:
                return None
            raw = self.page(number)
            pieces.append(raw[4 : 4 + min(left, room)])
            left -= len(pieces[-1])
            (number,) = struct.unpack_from(">I", raw)
        return b"".join(pieces) if left == 0 else None

    def unused(self) -> set[int]:
        """Pages on the list of free pages, which hold old rows; none if the list is damaged."""
        head = self.page(1)
        if not head.startswith(_MAGIC):
            return set()
        found: set[int] = set()
        trunk, total = struct.unpack_from(">II", head, 32)
        while 1 < trunk <= self.count and trunk not in found:
            found.add(trunk)
            raw = self.page(trunk)
            following, many = struct.unpack_from(">II", raw)
            many = min(many, self.usable // 4 - 2)
            found.update(struct.unpack_from(f">{many}I", raw, 8))
            trunk = following
        return found if len(found) == total else set()

    def _likely_size(self) -> int | None:
        """The size under which most of the file is pages; for a file whose header is lost."""
        blocks = -(-os.fstat(self._fd).st_size // _BLOCK)
        sound = dict.fromkeys(_SIZES, 0)
        for number in range(0, blocks, -(-blocks // _SAMPLE) or 1):
            block = os.pread(self._fd, _BLOCK, number * _BLOCK)
            for size in _SIZES:
                starts = range(0, len(block) - 511, size)
                sound[size] += sum(_is_tree_page(block, at, size) for at in starts)
        best = max(_SIZES, key=sound.__getitem__)
        return best if sound[best] else None

    def _read_log(self, path: str) -> tuple[int | None, list[page_sums.Frame]]:
        """The frames of the WAL; behind a damaged one they are as good as before it."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None, []
        header = os.pread(fd, _WAL_HEADER, 0)
        if len(header) < _WAL_HEADER or struct.unpack_from(">3I", header)[2] != self.size:
            return fd, []
        return fd, [*page_sums.frames_of(path)]


def _named_size(head: bytes) -> int | None:
    if not head.startswith(_MAGIC):
        return None
    (size,) = struct.unpack_from(">H", head, 16)
    size = 65536 if size == 1 else size
    return size if size in _SIZES else None


def _size_in_log(path: str) -> int | None:
    try:
        with open(path + "-wal", "rb") as log:
            header = log.read(_WAL_HEADER)
    except OSError:
        return None
    if len(header) < _WAL_HEADER:
        return None
    magic, _, size = struct.unpack_from(">3I", header)
    return size if magic in WAL_MAGIC and size in _SIZES else None


def _is_tree_page(block: bytes, at: int, size: int) -> bool:
    """Whether a sound page of a table or index begins here, if pages have this size.

    Its cells fill it from the end. So a smaller size does not hold them, and a larger one passes
    over every other page.
    """
    kind = block[at]
    if kind not in _TREE_PAGES:
        return False
    free, cells, content, fragments = struct.unpack_from(">HHHB", block, at + 1)
    array = 8 if kind & 8 else 12  # an inner page also names its last child
    content = content or 65536
    if fragments > 60 or free >= size or not array + 2 * cells <= content <= size:
        return False
    if at + array + 2 * cells > len(block):
        return False
    places = struct.unpack_from(f">{cells}H", block, at + array)
    return all(content <= place < size for place in places)


class Row(NamedTuple):
    """`lost`: the last value is missing, because its overflow pages are. The id of an entry of an
    index is 0."""

    id: int
    values: list[Any]
    lost: bool = False
    doubtful: bool = False  # on a damaged page: any value may be another


def rows_of_leaf(pages: Pages, number: int, page: bytes) -> Iterator[Row]:
    """Every row of a leaf page that can be read; a damaged one does not hide the others."""
    base = 100 if number == 1 else 0
    (many,) = struct.unpack_from(">H", page, base + 3)
    room = (pages.usable - base - 8) // 2
    doubtful = not pages.is_sound(number)
    for index in range(min(many, room)):
        (at,) = struct.unpack_from(">H", page, base + 8 + 2 * index)
        if not base + 8 <= at < pages.usable:
            continue
        try:
            row = _row(pages, page, at)
        except (IndexError, struct.error, ValueError):
            continue
        if row is not None:
            yield row._replace(doubtful=doubtful)


def _row(pages: Pages, page: bytes, at: int) -> Row | None:
    length, at = _varint(page, at)
    row_id = 0
    if page[0] != INDEX_LEAF:
        row_id, at = _varint(page, at)
    if not 0 < length < 1 << 31:
        return None
    local = _local_size(pages.usable, length, index=page[0] == INDEX_LEAF)
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


def _local_size(usable: int, length: int, *, index: bool) -> int:
    """How many bytes of a payload are on the leaf itself."""
    most = (usable - 12) * 64 // 255 - 23 if index else usable - 35
    if length <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    local = least + (length - least) % (usable - 4)
    return local if local <= most else least


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
