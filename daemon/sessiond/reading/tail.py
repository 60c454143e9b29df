"""Reads complete lines from a growing file. It knows nothing about JSON or the index."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sessiond.sourcekit import disk

BLOCK = 1 << 20
MARK = 4096  # bytes hashed at the head and before the offset
LONGEST_LINE = 32 << 20  # a longer line is archived but not parsed


class Unreadable(Exception):
    """The path cannot be read as a transcript; the message gives the reason."""


class Rewritten(Exception):
    """The bytes before the offset changed since they were read."""


def storable(ns: int) -> int:
    """Nanoseconds of years after 2262 do not fit into SQLite's 64 bits."""
    return max(-1 << 63, min(ns, (1 << 63) - 1))


@dataclass(slots=True, frozen=True)
class Stat:
    """The facts that show cheaply that a file has not changed."""

    dev: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stat:
        # Inode and device numbers may exceed SQLite's signed 64 bits on some file systems.
        return cls(
            found.st_dev & (1 << 63) - 1,
            found.st_ino & (1 << 63) - 1,
            found.st_size,
            storable(found.st_mtime_ns),
            storable(found.st_ctime_ns),
        )


@dataclass(slots=True, frozen=True)
class Checkpoint:
    """How far a file was read, and hashes to check that it is still the same file."""

    offset: int = 0
    head_hash: bytes | None = None
    tail_hash: bytes | None = None
    oversize_from: int | None = None


@dataclass(slots=True, frozen=True)
class Block:
    """Bytes from `start`. `lines` end with a newline; `rest` is an unfinished last line."""

    start: int
    data: bytes
    kind: str  # lines, rest, oversize, oversize-end


def open_regular(path: str) -> int:
    """Open a regular file; never follow a link or block on a FIFO."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0)
    try:
        fd = disk.opened(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Unreadable("is a symbolic link") from error
        raise Unreadable((error.strerror or str(error)).lower()) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Unreadable("is not a regular file")
    return fd


PACKED = ".zst"  # some agents compress old logs; it is still the same log
_LARGEST_UNPACKED = 4 << 30
_PACKED_PIECE = 8 << 10  # may be much larger unpacked


def log_name(path: str) -> str:
    """The name of a log, compressed or not."""
    return path.removesuffix(PACKED)


def log_file(path: str) -> str:
    """The file that contains a log now; the plain one if both exist."""
    return path + PACKED if not disk.lexists(path) and disk.lexists(path + PACKED) else path


def open_log(path: str) -> tuple[int, Stat]:
    """A descriptor for the bytes of a log, and the stat of the file that contains them."""
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        fd = open_regular(path + PACKED)
        try:
            return _unpacked(fd), Stat.of(os.fstat(fd))
        finally:
            os.close(fd)
    return fd, Stat.of(os.fstat(fd))


def _unpacked(packed: int) -> int:
    """Unpack into an unnamed temporary file."""
    import tempfile  # few agents compress logs

    import zstandard

    with os.fdopen(os.dup(packed), "rb") as source, tempfile.TemporaryFile() as plain:
        size = 0
        try:
            unpacker = zstandard.ZstdDecompressor().decompressobj()
            while piece := unpacker.unused_data or source.read(_PACKED_PIECE):
                if unpacker.eof:  # a file may have several frames
                    unpacker = zstandard.ZstdDecompressor().decompressobj()
                size += plain.write(unpacker.decompress(piece))
                if size > _LARGEST_UNPACKED:
                    raise Unreadable(f"is larger than {_LARGEST_UNPACKED >> 30} GiB unpacked")
        except zstandard.ZstdError as error:
            raise Unreadable("is not a complete zstd file") from error
        if not unpacker.eof:
            raise Unreadable("is not a complete zstd file")
        plain.flush()
        return os.dup(plain.fileno())


def read_at(fd: int, count: int, offset: int) -> bytes:
    """os.pread, with a fallback for systems without it."""
    if hasattr(os, "pread"):
        return os.pread(fd, count, offset)
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, count)


def mark(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


class Edges:
    """The first and the last bytes that were read.

    The marks are computed from these, not from the file, which may have changed meanwhile.
    """

    def __init__(self, first: bytes = b"", last: bytes = b"") -> None:
        self.first, self.last = first, last

    def add(self, data: bytes) -> None:
        if len(self.first) < MARK:
            self.first += data[: MARK - len(self.first)]
        self.last = (data if len(data) >= MARK else self.last + data)[-MARK:]


def advance(
    checkpoint: Checkpoint, edges: Edges, offset: int, oversize_from: int | None
) -> Checkpoint:
    """The checkpoint after reading everything before `offset`."""
    head = checkpoint.head_hash
    if checkpoint.offset < MARK or head is None:
        head = mark(edges.first)
    return replace(
        checkpoint,
        offset=offset,
        head_hash=head,
        tail_hash=mark(edges.last),
        oversize_from=oversize_from,
    )


def marked(checkpoint: Checkpoint, fd: int) -> Checkpoint:
    """The checkpoint with marks of what the file has now."""
    offset = checkpoint.offset
    start = max(0, offset - MARK)
    return replace(
        checkpoint,
        head_hash=mark(read_at(fd, min(MARK, offset), 0)) if offset else None,
        tail_hash=mark(read_at(fd, offset - start, start)) if offset else None,
    )


def verify(checkpoint: Checkpoint, fd: int) -> Edges:
    """What the file has at its start and before the offset; `Rewritten` if that changed."""
    offset = checkpoint.offset
    if offset == 0:
        return Edges()
    start = max(0, offset - MARK)
    last = read_at(fd, offset - start, start)
    if len(last) < offset - start or mark(last) != checkpoint.tail_hash:
        raise Rewritten
    first = read_at(fd, min(MARK, offset), 0)
    if mark(first) != checkpoint.head_hash:
        raise Rewritten
    return Edges(first, last)


def blocks(fd: int, checkpoint: Checkpoint, *, longest: int = LONGEST_LINE) -> Iterator[Block]:
    """Everything after the checkpoint. Memory stays below three times `longest`."""
    position = checkpoint.offset
    oversize = checkpoint.oversize_from is not None
    held: list[bytes] = []  # the start of a line whose end was not read yet
    size = 0
    while fresh := read_at(fd, BLOCK, position + size):
        if oversize:
            end = fresh.find(b"\n") + 1
            yield Block(position, fresh[: end or None], "oversize-end" if end else "oversize")
            position += end or len(fresh)
            oversize = not end
            continue
        held.append(fresh)
        size += len(fresh)
        cut = fresh.rfind(b"\n") + 1
        if cut:
            rest = fresh[cut:]
            held[-1] = fresh[:cut]
            data = b"".join(held)
            held, size = ([rest], len(rest)) if rest else ([], 0)
            yield Block(position, data, "lines")
            position += len(data)
            del data
        elif size > longest:
            for piece in held:
                yield Block(position, piece, "oversize")
                position += len(piece)
            held, size, oversize = [], 0, True
    if held:
        yield Block(position, b"".join(held), "rest")
