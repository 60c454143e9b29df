"""Databases of other programs are read as they are and left as they are."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sessiond.sourcekit.foreign import Changed, Foreign

ROWS = "SELECT a FROM t ORDER BY a"
SUFFIXES = ("", "-wal", "-shm")


def program(path: Path) -> sqlite3.Connection:
    """A program that has a database open; its second row is only in the log."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = wal")
    db.execute("CREATE TABLE t (a)")
    db.execute("INSERT INTO t VALUES (1)")
    db.execute("PRAGMA wal_checkpoint").fetchall()
    db.execute("INSERT INTO t VALUES (2)")
    return db


def backup(tmp_path: Path, *suffixes: str) -> Path:
    """A copy of a database that was open, with these of its files."""
    folder = tmp_path / "backup"
    folder.mkdir()
    with closing(program(tmp_path / "a.db")):
        for suffix in suffixes:
            shutil.copy2(tmp_path / f"a.db{suffix}", folder)
    return folder / "a.db"


def files(path: Path) -> dict[str, tuple[bytes, int]]:
    return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in path.parent.iterdir()}


@pytest.mark.parametrize("suffixes", [("", "-wal"), SUFFIXES])
def test_a_backup_is_read_with_its_log(tmp_path: Path, suffixes: tuple[str, ...]) -> None:
    """Neither a new file, nor another byte or time: a `-shm` is missing or from another machine."""
    path = backup(tmp_path, *suffixes)
    before = files(path)
    with Foreign(str(path)) as db:
        assert db.rows(ROWS) == [(1,), (2,)]
        assert files(path) == before
    assert files(path) == before


def test_an_open_database_keeps_its_shared_file(tmp_path: Path) -> None:
    """What a program writes is seen at once, and a reader writes nothing between two reads."""
    path = tmp_path / "a.db"
    with closing(program(path)) as writer, Foreign(str(path)) as db:
        for number in range(3, 20):
            writer.execute("INSERT INTO t VALUES (?)", (number,))
            before = files(path)
            assert len(db.rows(ROWS)) == number
            assert files(path) == before
            if number % 5 == 0:
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def test_a_program_that_opens_a_backup_is_noticed(tmp_path: Path) -> None:
    """It is read without locks, so it has to be read again."""
    path = backup(tmp_path, "", "-wal")
    with Foreign(str(path)) as db:
        assert db.rows(ROWS) == [(1,), (2,)]
        with closing(sqlite3.connect(path)) as writer:
            writer.execute("SELECT * FROM t").fetchall()
            with pytest.raises(Changed):
                db.rows(ROWS)
            with Foreign(str(path), live=True) as again:
                assert again.rows(ROWS) == [(1,), (2,)]


def test_a_database_that_was_closed_meanwhile_gets_no_files(tmp_path: Path) -> None:
    """It was seen changing, but now nobody has it open."""
    path = tmp_path / "a.db"
    program(path).close()
    with Foreign(str(path), live=True) as db:
        assert db.rows(ROWS) == [(1,), (2,)]
    assert [one.name for one in tmp_path.iterdir()] == ["a.db"]


def test_a_rollback_journal_needs_no_files(tmp_path: Path) -> None:
    """A reader waits for the writer as usual."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("CREATE TABLE t (a)")
        writer.execute("INSERT INTO t VALUES (1)")
        with Foreign(str(path), live=True) as db:
            assert db.rows(ROWS) == [(1,)]
            writer.execute("INSERT INTO t VALUES (2)")
            assert db.rows(ROWS) == [(1,), (2,)]
    assert [one.name for one in tmp_path.iterdir()] == ["a.db"]
