"""The schema: applied with its record, refused when it is not ours, never half there."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import apsw
import pytest
import sqlite_utils

from sess_schema import migrate
from sess_schema.connection import open_reader, open_writer
from sess_schema.errors import Exit, SessError

TABLES = {
    "sources", "chunks", "sessions", "session_sources", "turns", "events", "event_texts",
    "event_index", "files", "commits", "usage", "warnings", "migrations",
}  # fmt: skip
RELEASED = {
    "0001_initial.sql": "354638cf4eca",
    "0002_words.py": "765e20dce9a4",
    "0002_words.sql": "07b3b11cfbfc",
    "0003_databases.sql": "6cf587a61b99",
    "0004_cost.sql": "14955aecfd42",
    "0005_sums.py": "44fef12e24e8",
    "0005_sums.sql": "bbb10fecd6dd",
    "0006_house.py": "de75498f5226",
    "0006_house.sql": "c0a57f79886e",
    "0007_breadth.sql": "85d0742515e3",
}


def test_a_new_index_has_every_table_and_the_record_of_its_migrations(tmp_path):
    """An independent reader sees the tables; application_id and user_version are set."""
    open_writer(tmp_path / "index.db").close()
    other = sqlite_utils.Database(tmp_path / "index.db")
    assert set(other.table_names()) >= TABLES
    assert [row["number"] for row in other["migrations"].rows] == [
        number for number, _, _ in migrate.migrations()
    ]
    assert other.execute("PRAGMA application_id").fetchone() == (migrate.APPLICATION_ID,)
    assert other.execute("PRAGMA user_version").fetchone() == (migrate.latest(),)
    other.close()


def test_opening_again_changes_nothing(tmp_path):
    """Migrations are applied once."""
    open_writer(tmp_path / "index.db").close()
    db = open_writer(tmp_path / "index.db")
    assert db.execute("SELECT count(*) FROM migrations").get == migrate.latest()
    db.close()


def test_a_failing_migration_leaves_the_old_schema(tmp_path, monkeypatch):
    """An error in the middle of the SQL leaves no table and no version behind."""
    broken = [(1, "0001_broken", "CREATE TABLE one (x); CREATE TABLE one (x);")]
    monkeypatch.setattr(migrate, "migrations", lambda: broken)
    with pytest.raises(SessError):
        open_writer(tmp_path / "index.db")
    db = apsw.Connection(str(tmp_path / "index.db"))
    assert db.execute("SELECT count(*) FROM sqlite_schema").get == 0
    assert db.pragma("user_version") == 0
    db.close()


def test_released_migrations_are_frozen():
    """Their files are what they were, and the code among them imports nothing of ours."""
    folder = Path(migrate.__file__).with_name("migrations")
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        for path in sorted(folder.iterdir())
        if path.suffix in (".sql", ".py") and path.name < "0008"
    }
    assert digests == RELEASED
    for path in folder.glob("*.py"):
        names = {
            name.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in node.names
        }
        ours = {name for name in names if name.startswith(("sess_", "sessiond"))}
        assert not ours, path.name


def test_an_upgrade_reports_what_it_does_and_a_new_index_needs_none(tmp_path, monkeypatch):
    """Each step is named, again and again while its statements run; code beside it counts."""
    said = []
    path = tmp_path / "index.db"
    open_writer(path, said.append).close()
    assert said == []
    counting = (
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)"
        " SELECT count(*) FROM n"
    )
    (tmp_path / "9998_slow.sql").write_text(counting)
    (tmp_path / "9999_code.sql").write_text("CREATE TABLE made (x)")
    (tmp_path / "9999_code.py").write_text(
        "def apply(db, progress):\n    progress(1, 2000)\n    db.execute('DROP TABLE made')\n"
    )
    monkeypatch.setattr(migrate, "_FOLDER", tmp_path)
    migrate.migrations.cache_clear()
    migrate.latest.cache_clear()
    try:
        open_writer(path, said.append).close()
    finally:
        migrate.migrations.cache_clear()
        migrate.latest.cache_clear()
    slow, code = "upgrading the index (9998_slow)", "upgrading the index (9999_code)"
    assert said[:2] == [slow, slow]
    assert said[-2:] == [code, f"{code}: 1 of 2,000"]
    db = apsw.Connection(str(path))
    assert db.pragma("user_version") == 9999
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'made'").get == 0
    db.close()


def test_a_newer_index_is_refused_with_advice(tmp_path):
    """Reader and writer exit 4 and say how to upgrade; nothing is written."""
    path = tmp_path / "index.db"
    db = open_writer(path)
    db.pragma("user_version", migrate.latest() + 1)
    db.close()
    before = path.read_bytes()
    for opener in (open_reader, open_writer):
        with pytest.raises(SessError) as caught:
            opener(path)
        assert "written by a newer sessiond" in caught.value.message
        assert caught.value.hint == "upgrade with `pip install --upgrade sessiond`"
        assert caught.value.code == Exit.INDEX_UNUSABLE
    assert path.read_bytes() == before


def test_a_reader_cannot_write(tmp_path):
    """The read-only connection refuses every change."""
    open_writer(tmp_path / "index.db").close()
    db = open_reader(tmp_path / "index.db")
    with pytest.raises(apsw.ReadOnlyError):
        db.execute("DELETE FROM sources")
    db.close()
