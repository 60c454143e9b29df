"""A checksum in every page of the index, so that a check finds any bit that changed on the disk.

The writer puts it into the last bytes of a page that goes to the file, and compares it when a page
is read back: what is damaged is never written again under a new checksum. Pages in the WAL have
SQLite's own checksums. Other programs read the file as usual, but must not write to it.
"""

# ruff: noqa: N802 - SQLite names the methods of a file

from __future__ import annotations

import os
import struct
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from zlib import crc32

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass

if TYPE_CHECKING:
    from typing import Any

BYTES = 4  # reserved at the end of each page
_HEADER = 100
_NEW = 4096  # the size of pages in a new file
_TRIES, _PAUSE = 5, 0.05  # a page may be written while it is read
_PAGES_AT_ONCE = 256
WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER, _FRAME_HEADER = 32, 24
_SIZES = tuple(512 << power for power in range(8))


class SummedFile(apsw.VFSFile):
    """The main file of an index."""

    def __init__(self, base: str, name: Any, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        # Of pages; 0: they have no checksums. The first page is not always written first.
        self._size = _NEW if super().xFileSize() == 0 else 0

    def xRead(self, amount: int, offset: int) -> bytes:
        raw: bytes = super().xRead(amount, offset)
        if offset == 0 and len(raw) >= _HEADER:
            self._size = summed_size(raw)
        if amount == self._size and len(raw) == amount and not is_sound(raw, offset // amount):
            raise apsw.CorruptError(f"page {offset // amount + 1} is damaged")
        return raw

    def xWrite(self, data: Any, offset: int) -> None:
        if offset == 0:
            self._size = summed_size(data)
        if len(data) == self._size:
            data = sealed(data, offset // self._size)
        super().xWrite(data, offset)


class _Summed(apsw.VFS):
    def __init__(self, name: str) -> None:
        self._base = apsw.vfs_names()[0]
        super().__init__(name, self._base)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return SummedFile(self._base, name, flags)
        return super().xOpen(name, flags)


known: dict[str, _Summed] = {}  # by the file system below, which tests replace


def opened(path: str) -> apsw.Connection:
    """A connection that writes checksums; only a new file gets room for them."""
    below = apsw.vfs_names()[0]
    name = f"sess-summed-{below}"
    if below not in known:
        known[below] = _Summed(name)
    db = apsw.Connection(path, vfs=name)
    if not os.path.getsize(path):
        db.reserve_bytes("main", BYTES)
    return db


def summed_size(head: bytes) -> int:
    """The size of pages, if they have checksums."""
    if len(head) < _HEADER or head[20] != BYTES or not head.startswith(b"SQLite format 3\0"):
        return 0
    size = int.from_bytes(head[16:18], "big")
    return 65536 if size == 1 else size


def whole_size(first: bytes) -> int:
    """How many pages a file has, as its first page says, if that is sound."""
    return int.from_bytes(first[28:32], "big") if is_sound(first, 0) else 0


def sealed(page: bytes, number: int) -> bytes:
    """The page with its checksum; pages count from 0 here."""
    body = memoryview(page)[:-BYTES]
    return b"".join((body, crc32(body, number).to_bytes(BYTES, "big")))


def is_sound(page: bytes, number: int) -> bool:
    """Whether a page is what was written; a page of zeros never was."""
    stored = int.from_bytes(page[-BYTES:], "big")
    return crc32(memoryview(page)[:-BYTES], number) == stored or not any(page)


# -- what a check finds


Progress = Callable[[int, int], None]


def _unseen(_done: int, _of: int) -> None: ...


def damage(path: str, progress: Progress = _unseen) -> Iterator[str]:
    """One line for each page of a file and its WAL that is not what was written."""
    frames = committed([*frames_of(path + "-wal")])
    if frames and not _is_header(log_of(path + "-wal").header):
        yield "the head of the write-ahead log is damaged"
    for frame in frames:
        if not frame.sound:
            yield f"page {frame.page:,} in the write-ahead log is damaged"
    newer = {frame.page for frame in frames}
    with _opened(path) as file:
        size = summed_size(file.xRead(_HEADER, 0))
        total = file.xFileSize() // size if size else 0
        whole = whole_size(file.xRead(size, 0)) if size else 0
        if total < whole and not newer:
            yield f"{whole - total:,} of its {whole:,} pages are missing"
        for first in range(0, total, _PAGES_AT_ONCE):
            progress(first, total)
            raw = file.xRead(size * min(_PAGES_AT_ONCE, total - first), first * size)
            for at in range(0, len(raw), size):
                number = first + at // size
                if number + 1 in newer or is_sound(raw[at : at + size], number):
                    continue
                if not _is_sound_later(file, number, size):
                    yield f"page {number + 1:,} is not what was written"


def head_of(path: str) -> bytes:
    """The header of a database."""
    with _opened(path) as file:
        head: bytes = file.xRead(_HEADER, 0)
        return head


@contextmanager
def _opened(path: str) -> Iterator[apsw.VFSFile]:
    """By SQLite, which knows that to close a descriptor drops the locks of this process."""
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
    file = apsw.VFSFile("", path, flags)
    try:
        yield file
    finally:
        file.xClose()


def _is_sound_later(file: apsw.VFSFile, number: int, size: int) -> bool:
    for _ in range(_TRIES):
        time.sleep(_PAUSE)
        if is_sound(file.xRead(size, number * size), number):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Frame:
    """A page in a WAL; counted from 1."""

    page: int
    ends: bool  # a transaction
    offset: int  # of the page itself
    sound: bool


def frames_of(wal: str, *, compare: bool = True) -> Iterator[Frame]:
    """The frames since the last restart of a WAL, those behind a damaged one too."""
    try:
        fd = os.open(wal, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        header = os.pread(fd, _WAL_HEADER, 0)
        if len(header) < _WAL_HEADER:
            return
        magic, _, size, _, *salts, first, second = struct.unpack(">8I", header)
        if not _is_header(header):  # the frames say what they are of
            salts = [*struct.unpack(">2I", os.pread(fd, 8, _WAL_HEADER + 8).ljust(8, b"\0"))]
            size, magic = (size if size in _SIZES else _NEW), WAL_MAGIC[sys.byteorder == "big"]
        if magic not in WAL_MAGIC or size not in _SIZES:
            return
        before, at = (first, second), _WAL_HEADER
        while True:
            head = os.pread(fd, _FRAME_HEADER, at)
            if len(head) < _FRAME_HEADER:
                return
            page, ends, *own = struct.unpack(">6I", head)
            if own[:2] != salts or not page:  # left over from before the last restart
                return
            sound = True
            if compare:
                raw = os.pread(fd, size, at + _FRAME_HEADER)
                little = magic == WAL_MAGIC[0]
                sound = _chained(head[:8] + raw, before, little=little) == (own[2], own[3])
            before = own[2], own[3]
            yield Frame(page, bool(ends), at + _FRAME_HEADER, sound)
            at += _FRAME_HEADER + size
    finally:
        os.close(fd)


def _is_header(header: bytes) -> bool:
    little = header[:4] == WAL_MAGIC[0].to_bytes(4, "big")
    return _chained(header[:24], (0, 0), little=little) == struct.unpack(">2I", header[24:])


def _chained(raw: bytes, before: tuple[int, int], *, little: bool) -> tuple[int, int]:
    """The checksum that SQLite adds up over a WAL."""
    words = array("I", raw[: len(raw) & ~7])
    if little != (sys.byteorder == "little"):
        words.byteswap()
    first, second = before
    for at in range(0, len(words), 2):
        first = (first + words[at] + second) & 0xFFFFFFFF
        second = (second + words[at + 1] + first) & 0xFFFFFFFF
    return first, second


@dataclass(frozen=True, slots=True)
class Log:
    """How much a WAL holds, by its headers alone."""

    header: bytes
    ends: list[int]  # the number of the last frame of each transaction


def log_of(wal: str) -> Log:
    ends = [at for at, frame in enumerate(frames_of(wal, compare=False), 1) if frame.ends]
    header = b""
    if ends:
        with open(wal, "rb") as file:
            header = file.read(_WAL_HEADER)
    return Log(header, ends)


def committed(frames: list[Frame]) -> list[Frame]:
    """Those of finished transactions, whatever SQLite would make of damage in between."""
    last = max((at for at, frame in enumerate(frames) if frame.ends), default=-1)
    return frames[: last + 1]
