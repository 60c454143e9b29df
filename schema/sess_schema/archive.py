"""The raw bytes of every source, compressed, and how to read them back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import apsw
import zstandard

LIVE, PENDING = 0, -1  # chunks.retired: currently in the file; an unfinished last line

_local = threading.local()


def pack(raw: bytes) -> bytes:
    if not hasattr(_local, "compressor"):  # one per thread: not thread-safe
        _local.compressor = zstandard.ZstdCompressor(level=3)
    return _local.compressor.compress(raw)  # type: ignore[no-any-return]


def unpack(packed: bytes) -> bytes:
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    return _local.decompressor.decompress(packed)  # type: ignore[no-any-return]


def source_bytes(db: apsw.Connection, source_id: int) -> Iterator[bytes]:
    """The file as last read, chunk by chunk."""
    for (packed,) in db.execute(
        "SELECT data FROM chunks WHERE source_id = ? AND retired = 0 ORDER BY offset",
        (source_id,),
    ):
        yield unpack(packed)
    for (packed,) in db.execute(
        "SELECT data FROM chunks WHERE source_id = ? AND retired = -1 ORDER BY offset",
        (source_id,),
    ):
        yield unpack(packed)
