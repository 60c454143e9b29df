"""A file that was rewritten: what it still says keeps its rows, what it no longer says is retired.

The whole file is read again in one transaction. Bytes that are still the same stay in the archive
as they are; the others are kept beside the new ones under the number of the generation they left.
"""

from __future__ import annotations

from sess_schema import archive
from sessiond.engines.slices import Progress
from sessiond.reading import tail
from sessiond.reading.tracked import Tracked
from sessiond.writing.store import Store


def common_prefix(store: Store, source: Tracked, fd: int) -> int:
    """How many archived bytes the file still begins with, up to a border between chunks."""
    kept = 0
    for offset, length, packed in store.db.execute(
        "SELECT offset, length, data FROM chunks WHERE source_id = ? AND retired = 0"
        " ORDER BY offset",
        (source.id,),
    ):
        if tail.read_at(fd, length, offset) != archive.unpack(packed):
            break
        kept = offset + length
    return kept


def rewind(store: Store, source: Tracked, kept: int) -> None:
    """Retire every turn of the source and start to read it from its first byte."""
    db = store.db
    source.generation += 1
    new = source.generation
    db.execute(
        "UPDATE chunks SET retired = ? WHERE source_id = ? AND retired = 0 AND offset >= ?",
        (new, source.id, kept),
    )
    db.execute(
        "UPDATE turns SET retired = ? WHERE source_id = ? AND retired = 0 AND session_id IN"
        " (SELECT session_id FROM session_sources WHERE source_id = ?)",
        (new, source.id, source.id),
    )
    db.execute(
        "UPDATE warnings SET retired = ? WHERE source_id = ? AND retired = 0", (new, source.id)
    )
    # Sessions that only this file tells about are told about anew.
    alone = db.execute(
        "SELECT session_id FROM session_sources s WHERE source_id = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM session_sources o WHERE o.session_id = s.session_id"
        " AND o.source_id <> ?1)",
        (source.id,),
    )
    for (session_id,) in list(alone):
        store.sessions.by_id(session_id).unlearn()
        store.titles.take_back(session_id)
    source.archived_to = kept
    source.save_progress(db, Progress())


def settle(store: Store, source: Tracked) -> None:
    """After the new reading: hand over or retire the events of turns that did not come back."""
    db = store.db
    members = "SELECT session_id FROM session_sources WHERE source_id = ?"
    lost = db.execute(
        f"SELECT id, session_id FROM turns WHERE source_id = ? AND retired = ? AND copy_of IS NULL"
        f" AND session_id IN ({members})",
        (source.id, source.generation, source.id),
    )
    for turn_id, session_id in list(lost):
        store.retire(turn_id, session_id, source.generation)
    store.part_lost(source)
    for (session_id,) in list(db.execute(members, (source.id,))):
        store.recount(session_id)
