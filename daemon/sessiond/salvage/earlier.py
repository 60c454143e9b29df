"""Reads what salvaged files contained before they were rewritten, so that their tokens count.

The contents are read oldest first, as if each had been seen in its time. The last one is left to
the next reread, which finds the records that it still has among those that left.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING

from sess_schema import archive
from sess_schema.ids import NO_SOURCE
from sessiond.engines.lines import LogReader
from sessiond.engines.slices import PlacedRecord
from sessiond.reading import tail
from sessiond.reading.territory import HEAD
from sessiond.reading.tracked import Progress, Tracked
from sessiond.salvage.finds import Piece
from sessiond.sourcekit.base import SessionSpec, Source
from sessiond.writing.transaction import Transaction

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker

UNREAD = 0  # no edition: the log is read from the archive


def read_earlier(
    transaction: Transaction, agent: Source, log: Tracked, mask: Masker | None = None
) -> None:
    """Read the earlier contents of an archived log, and mark it to be read again."""
    db, latest = transaction.db, log.generation
    contents = archive.earlier(db, log.id or NO_SOURCE)
    if not contents:
        return
    transaction.rewriting.retire_records(log)  # those that it has now, if it was read before
    for number in sorted(contents):
        _read(transaction, agent, log, contents[number], mask)
        log.generation = number + 1
        transaction.rewriting.retire_records(log)
        transaction.rewriting.finish(log)
    log.generation = latest
    log.save_edition(db, UNREAD)


def _read(
    transaction: Transaction,
    agent: Source,
    log: Tracked,
    chunks: list[archive.Chunk],
    mask: Masker | None,
) -> None:
    with tempfile.TemporaryFile(dir=os.path.dirname(transaction.db.filename)) as file:
        for chunk in chunks:
            try:
                file.write(archive.chunk_bytes(transaction.db, chunk))
            except archive.Damaged:
                archive.met.pop()  # the next check names it
        file.flush()
        spec = agent.identify(log.path, tail.read_at(file.fileno(), HEAD, 0))
        if mask is not None:
            spec = mask.spec(spec)
        parser = agent.parser(spec, {})
        for slice_ in LogReader(file.fileno(), spec, parser, Progress(), mask=mask).slices():
            if slice_.records:
                transaction.records.write(log, spec, slice_.records)


def read_left(
    transaction: Transaction,
    part: Tracked,
    spec: SessionSpec,
    pieces: list[Piece],
    placed_of: Callable[[int, Piece], PlacedRecord],
) -> None:
    """Read the records that left a conversation, by the generation that they left in."""
    db, latest = transaction.db, part.generation
    for number in sorted({piece.retired for piece in pieces if piece.retired > 0}):
        gone = [piece for piece in pieces if piece.retired == number]
        records = [placed_of(line, piece) for line, piece in enumerate(gone, 1)]
        transaction.records.write(part, spec, records)
        part.generation = number
        session = transaction.sessions.get(part.agent, spec)
        for placed in records:
            transaction.copies.retire(placed.id, session.id, number)
            db.execute("UPDATE records SET retired = ? WHERE id = ?", (number, placed.id))
        transaction.events.detach_lost(part.id or NO_SOURCE, number)
    part.generation = latest
