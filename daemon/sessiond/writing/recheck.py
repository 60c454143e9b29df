"""Compares older parts of logs with the archive, a few at each walk, in turn.

A log that grew is only compared at its start and just before the offset. An edit of equal length in
between is found here.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace

import apsw

from sess_schema import archive, masks
from sess_schema.ids import SourceId
from sessiond.reading import tail
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import LIVE, Tracked

BYTES = 512 << 10  # at each walk
CHUNKS = 1000  # looked at, including those of files that are gone


class Recheck:
    """Remembers where the last walk ended."""

    def __init__(self) -> None:
        self._last: int | None = None  # the chunk that was compared last

    def some(self, db: apsw.Connection, tracked: Mapping[str, Tracked]) -> None:
        """Compare some chunks; a source that differs loses its stat and is compared as a whole."""
        masked = masks.are_used(db)
        logs = {source.id: source for source in tracked.values() if _is_live_log(source)}
        left = BYTES
        for source_id, chunk in self._next(db):
            self._last = chunk.id
            source = logs.get(source_id)
            if source is None or chunk.retired != archive.LIVE:
                continue
            if source.stat and _differs(source, source.stat, chunk, db, masked=masked):
                source.stat = replace(source.stat, mtime_ns=-1)
            left -= chunk.length
            if left <= 0:
                break

    def _next(self, db: apsw.Connection) -> Iterator[tuple[SourceId, archive.Chunk]]:
        """Chunks in turn, whatever they are of; after the last one comes the first."""
        newest: int = db.execute("SELECT coalesce(max(id), 0) FROM chunks").get
        if self._last is None:  # short-lived processes begin anywhere
            self._last = random.randint(0, newest)  # noqa: S311 - no secret
        for low, high in ((self._last, newest), (-1, self._last)):
            for source_id, *columns in db.execute(
                "SELECT source_id, id, retired, offset, length FROM chunks"
                " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
                (low, high, CHUNKS),
            ):
                yield source_id, archive.Chunk(*columns)


def _is_live_log(source: Tracked) -> bool:
    return source.state == LIVE and source.kind == "transcript" and source.part_of is None


def _differs(
    source: Tracked, stat: Stat, chunk: archive.Chunk, db: apsw.Connection, *, masked: bool
) -> bool:
    """Whether the file, unchanged since its last read, has other bytes than the archive."""
    try:
        fd = tail.open_regular(source.path)  # not compressed ones: nobody edits these
    except (OSError, tail.Unreadable):
        return False
    try:
        if Stat.of(os.fstat(fd)) != stat:
            return False  # it is read again anyway
        live = tail.read_at(fd, chunk.length, chunk.offset)
        return not masks.same(live, archive.chunk_bytes(db, chunk), masked=masked)
    except (OSError, archive.Damaged):
        return False
    finally:
        os.close(fd)
