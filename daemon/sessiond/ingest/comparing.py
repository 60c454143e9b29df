"""Compares files with what is archived of them: rewritten, moved, or edited somewhere."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import apsw

from sess_schema import archive
from sess_schema.ids import NO_SOURCE, SourceId
from sessiond.reading import tail
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import LIVE, Tracked


def common_prefix(db: apsw.Connection, source: Tracked, fd: int) -> int:
    """How many archived bytes the file still starts with, in whole chunks."""
    kept, masked = 0, archive.has_masks(db)
    for chunk in archive.current(db, source.id or NO_SOURCE):
        if chunk.retired == archive.PENDING or chunk.offset != kept:  # a piece is missing
            break
        try:
            live = tail.read_at(fd, chunk.length, chunk.offset)
            if not archive.is_same(live, archive.chunk_bytes(db, chunk), masked=masked):
                break
        except archive.Damaged:  # the file has the bytes, so they are archived again
            break
        kept = chunk.end
    return kept


def mark_again(db: apsw.Connection, source: Tracked, fd: int) -> None:
    """Take the marks from a file that equals its masked archive outside the masks.

    Those that were made of the archive, as by a reread, do not match the file.
    """
    if archive.has_masks(db):
        progress = source.progress
        source.progress = replace(progress, checkpoint=tail.marked(progress.checkpoint, fd))


Parts = Callable[[Tracked], list[Tracked]]


def follow_moves(
    db: apsw.Connection, tracked: dict[str, Tracked], files: Sequence[Candidate], parts: Parts
) -> None:
    """Rename the sources of files that are new by name, but not by content."""
    for file in files:
        if file.path in tracked or file.kind == "database":
            continue
        same_inode = db.execute(
            "SELECT path FROM sources WHERE inode = ? AND dev = ?",
            (file.stat.inode, file.stat.dev),
        )
        for (path,) in list(same_inode):
            moved = tracked[path]
            if (
                os.path.basename(path) == os.path.basename(file.path)
                and not os.path.lexists(tail.log_file(path))
                and _still_same(db, moved, file.path)
            ):
                with db:
                    for source in (moved, *parts(moved)):
                        del tracked[source.path]
                        source.save_path(db, file.path + source.path.removeprefix(path))
                        tracked[source.path] = source
                break


def _still_same(db: apsw.Connection, known: Tracked, path: str) -> bool:
    """Inode numbers are reused; the bytes decide."""
    try:
        fd, _ = tail.open_log(path)
    except (OSError, tail.Unreadable):
        return False
    try:
        if known.is_whole:
            return common_prefix(db, known, fd) == os.fstat(fd).st_size
        tail.verify(known.progress.checkpoint, fd)
    except tail.Rewritten:
        return False
    finally:
        os.close(fd)
    return True


# A log that grew is only compared at its start and just before the offset. An edit of equal length
# in between is found by comparing a few older parts at each walk, in turn.
BYTES = 512 << 10
CHUNKS = 1000  # looked at, including those of files that are gone


class Recheck:
    """Remembers where the last walk ended."""

    def __init__(self) -> None:
        self._last: int | None = None  # the chunk that was compared last

    def some(self, db: apsw.Connection, tracked: Mapping[str, Tracked]) -> None:
        """Compare some chunks; a source that differs loses its stat and is compared as a whole."""
        masked = archive.has_masks(db)
        logs = {source.id: source for source in tracked.values() if _is_live_log(source)}
        budget = BYTES
        for source_id, chunk in self._next(db):
            self._last = chunk.id
            source = logs.get(source_id)
            if source is None or chunk.retired != archive.LIVE:
                continue
            if source.stat and _differs(source, source.stat, chunk, db, masked=masked):
                source.stat = replace(source.stat, mtime_ns=-1)
            budget -= chunk.length
            if budget <= 0:
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
        return not archive.is_same(live, archive.chunk_bytes(db, chunk), masked=masked)
    except (OSError, archive.Damaged):
        return False
    finally:
        os.close(fd)
