"""The size of the pages of a database that no longer says it."""

from __future__ import annotations

from contextlib import closing

import apsw
import pytest

from sessiond.salvage.pages import Pages

SIZES = [512 << power for power in range(8)]


def database(path, size, rows):
    """Rows of one to three pages and a small index, as an archive has them."""
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("page_size", size)
        db.execute("CREATE TABLE chunks (id INTEGER PRIMARY KEY, name TEXT UNIQUE, data BLOB)")
        with db:
            for number in range(rows):
                row = (f"name {number}", bytes([number % 251]) * (number * 397 % (3 * size)))
                db.execute("INSERT INTO chunks (name, data) VALUES (?, ?)", row)


def found(path):
    with closing(Pages(str(path))) as pages:
        return pages.size


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("lost", [(0, 100), (16, 18), (0, 512)])
def test_pages_tell_their_size_when_the_header_does_not(tmp_path, size, rows, lost):
    """Any size that SQLite writes, with a header that is gone or names no size."""
    path = tmp_path / "index.db"
    database(path, size, rows)
    raw = bytearray(path.read_bytes())
    raw[slice(*lost)] = bytes(lost[1] - lost[0])
    path.write_bytes(raw)
    assert found(path) == size


@pytest.mark.parametrize("size", SIZES)
def test_the_log_tells_the_size_when_nothing_else_is_left(tmp_path, size):
    """Rows that are only in the WAL come back although the file itself is all zeros."""
    path = tmp_path / "index.db"
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("page_size", size)
        db.pragma("journal_mode", "wal")
        db.wal_autocheckpoint(0)
        db.execute("CREATE TABLE chunks (data BLOB); INSERT INTO chunks VALUES (zeroblob(20))")
        log = (tmp_path / "index.db-wal").read_bytes()
    path.write_bytes(bytes(size))
    (tmp_path / "index.db-wal").write_bytes(log)
    with closing(Pages(str(path))) as pages:
        assert (pages.size, pages.count) == (size, 2)


def test_a_file_of_zeros_has_pages_all_the_same(tmp_path):
    """Nothing can be found in it, and nothing fails."""
    path = tmp_path / "index.db"
    path.write_bytes(bytes(100_000))
    with closing(Pages(str(path))) as pages:
        assert not list(pages.leaves())
