"""Pieces that were archived before checksums existed get them."""

from __future__ import annotations

import zstandard
from tests.schema.stored import make

from sess_schema import archive
from sess_schema.connection import open_writer
from sessiond.writing import checksums


def test_older_pieces_get_checksums_and_keep_their_bytes(tmp_path, monkeypatch):
    """In batches, after a stop too; a damaged piece stays as it is."""
    index = make.unpack(6, tmp_path)
    db = open_writer(index)
    before = dict(list(db.execute("SELECT id, data FROM chunks")))
    damaged = min(before)
    broken = before[damaged][:20] + bytes(8) + before[damaged][28:]
    db.execute("UPDATE chunks SET data = ? WHERE id = ?", (broken, damaged))
    assert not any(archive.is_checked(data) for data in before.values())
    monkeypatch.setattr(checksums, "_BATCH", 1)
    stops = iter((False, False, True))
    first = checksums.add_checksums(db, stopped=lambda: next(stops))
    assert first == 2
    checksums.add_checksums(db)
    for key, data in db.execute("SELECT id, data FROM chunks"):
        if key != damaged:
            assert archive.is_checked(data)
            assert archive.unpack(data) == zstandard.decompress(before[key])
    assert db.execute("SELECT data FROM chunks WHERE id = ?", (damaged,)).get == broken
    assert checksums.add_checksums(db) == 0
    db.close()
    archive.met.clear()
