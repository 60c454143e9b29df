"""Adds checksums to pieces archived before these existed."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from sess_schema import archive
from sess_schema.progress import Progress, unseen

_FACT = "chunks_without_checksum"  # chunks up to this id may have none
_BATCH = 32 << 20  # unpacked bytes


def add_checksums(
    db: apsw.Connection,
    progress: Progress = unseen,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Pack older pieces again, the newest first; each batch commits its position."""
    done = 0
    while (last := db.execute("SELECT value FROM facts WHERE name = ?", (_FACT,)).get) is not None:
        if stopped():
            break
        progress(f"adding checksums to the archive, {done:,} pieces done")
        with db:
            done += _batch(db, int(last))
    return done


def _batch(db: apsw.Connection, last: int) -> int:
    packed: list[tuple[bytes, int]] = []
    size = 0
    for key, length, data in db.execute(
        "SELECT id, length, data FROM chunks WHERE id <= ? ORDER BY id DESC", (last,)
    ):
        last = key - 1
        if not archive.is_checked(data):
            try:
                packed.append((archive.pack(archive.unpack(data)), key))
            except archive.Damaged:
                continue  # `sess check` names it
        size += length
        if size >= _BATCH:
            db.execute("UPDATE facts SET value = ? WHERE name = ?", (last, _FACT))
            break
    else:
        db.execute("DELETE FROM facts WHERE name = ?", (_FACT,))
    db.executemany("UPDATE chunks SET data = ? WHERE id = ?", packed)
    return len(packed)
