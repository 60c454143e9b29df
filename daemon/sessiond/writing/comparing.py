"""Compares files with what is archived of them."""

from __future__ import annotations

from dataclasses import replace

import apsw

from sess_schema import archive, masks
from sess_schema.ids import NO_SOURCE
from sessiond.reading import tail
from sessiond.reading.tracked import Tracked


def common_prefix(db: apsw.Connection, source: Tracked, fd: int) -> int:
    """How many archived bytes the file still starts with, in whole chunks."""
    kept, masked = 0, masks.are_used(db)
    for chunk in archive.current(db, source.id or NO_SOURCE):
        if chunk.retired == archive.PENDING or chunk.offset != kept:  # a piece is missing
            break
        try:
            live = tail.read_at(fd, chunk.length, chunk.offset)
            if not masks.same(live, archive.chunk_bytes(db, chunk), masked=masked):
                break
        except archive.Damaged:  # the file has the bytes, so they are archived again
            break
        kept = chunk.end
    return kept


def mark_again(db: apsw.Connection, source: Tracked, fd: int) -> None:
    """Take the marks from a file that equals its masked archive outside the masks.

    Those that were made of the archive, as by a reread, do not match the file.
    """
    if masks.are_used(db):
        progress = source.progress
        source.progress = replace(progress, checkpoint=tail.marked(progress.checkpoint, fd))
