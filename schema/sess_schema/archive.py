"""The raw bytes of every source, compressed with a checksum, and how to read them back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import apsw
import zstandard

from sess_common.errors import Exit, SessError
from sess_schema.ids import SourceId

LIVE, PENDING = 0, -1  # chunks.retired: currently in the file; an unfinished last line

_local = threading.local()
met: list[Damaged] = []  # damage that this process met; `program` tells about it at the end


class Damaged(SessError):
    """Archived bytes that are no longer what they were."""

    def __init__(self, what: str = "an archived record") -> None:
        super().__init__(
            f"{what} is damaged in the index",
            hint="`sess check` lists all damage, `sessiond repair` mends what it can",
            code=Exit.INDEX_UNUSABLE,
        )
        met.append(self)


class Chunk(NamedTuple):
    """A piece of a source; its bytes are read on demand."""

    id: int
    retired: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length


def pack(raw: bytes) -> bytes:
    if not hasattr(_local, "compressor"):  # one per thread: not thread-safe
        _local.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    return _local.compressor.compress(raw)  # type: ignore[no-any-return]


def unpack(packed: bytes) -> bytes:
    """The bytes as they were archived, or `Damaged`."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    try:
        return _local.decompressor.decompress(packed)  # type: ignore[no-any-return]
    except (zstandard.ZstdError, MemoryError) as error:  # a damaged header may claim any size
        raise Damaged from error


def chunk_bytes(db: apsw.Connection, chunk: Chunk) -> bytes:
    return stored(db, chunk.id, chunk.length)


def stored(db: apsw.Connection, key: int, length: int) -> bytes:
    """The bytes of the chunk with this id."""
    packed = db.execute("SELECT data FROM chunks WHERE id = ?", (key,)).get
    raw = unpack(packed if isinstance(packed, bytes) else b"")
    if len(raw) != length:  # damage may have turned its checksum off
        raise Damaged
    return raw


def source_bytes(db: apsw.Connection, source_id: SourceId) -> Iterator[bytes]:
    """The file as last read, chunk by chunk."""
    for chunk in current(db, source_id):
        yield chunk_bytes(db, chunk)


def current(db: apsw.Connection, source_id: SourceId) -> list[Chunk]:
    """The chunks of the file as last read, the unfinished last line included."""
    return [*_retired(db, source_id, LIVE), *_retired(db, source_id, PENDING)]


def earlier(db: apsw.Connection, source_id: SourceId) -> dict[int, list[Chunk]]:
    """The chunks of each earlier content of a rewritten file, by generation, newest first.

    A rewrite retires the chunks from the first byte that differs; those before it are shared.
    """
    found: dict[int, list[Chunk]] = {}
    later = current(db, source_id)
    retired = db.execute(
        "SELECT DISTINCT retired FROM chunks WHERE source_id = ? AND retired > 0 ORDER BY 1 DESC",
        (source_id,),
    )
    for number in [int(one) for (one,) in retired]:
        left = _retired(db, source_id, number)
        shared = [chunk for chunk in later if chunk.end <= left[0].offset]
        later = found[number - 1] = [*shared, *left]
    return found


def size(chunks: list[Chunk]) -> int:
    return sum(chunk.length for chunk in chunks)


def _retired(db: apsw.Connection, source_id: SourceId, retired: int) -> list[Chunk]:
    return [
        Chunk(*row)
        for row in db.execute(
            "SELECT id, retired, offset, length FROM chunks WHERE source_id = ? AND retired = ?"
            " ORDER BY offset",
            (source_id, retired),
        )
    ]
