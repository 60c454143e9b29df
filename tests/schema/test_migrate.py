"""The schema: applied with its record, refused when it is not ours, never half there."""

from __future__ import annotations

import ast
import hashlib
from contextlib import closing
from pathlib import Path

import apsw
import pytest
import sqlite_utils
from tests.must import must
from tests.schema.upgrading import LATER, later

from sess_common import installation
from sess_common.errors import Exit, SessError
from sess_schema import migrate
from sess_schema.connection import open_reader, open_writer

TABLES = {
    "sources", "chunks", "sessions", "session_sources", "records", "events", "event_texts",
    "event_index", "files", "commits", "usage", "warnings", "migrations",
}  # fmt: skip
# Files of `migrations/` that a release has, and what they must stay: name and beginning of SHA-256.
RELEASED: dict[str, str] = {}


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


def test_a_failing_migration_leaves_no_table(tmp_path):
    """An error in the middle of the SQL leaves no table and no version behind."""
    folder = tmp_path / "later"
    folder.mkdir()
    (folder / "9001_broken.sql").write_text("CREATE TABLE one (x); CREATE TABLE one (x);")
    with later(folder), pytest.raises(SessError):
        open_writer(tmp_path / "index.db")
    db = apsw.Connection(str(tmp_path / "index.db"))
    assert db.execute("SELECT count(*) FROM sqlite_schema").get == 0
    assert db.pragma("user_version") == 0
    db.close()


def test_released_migrations_are_frozen():
    """Their files are what they were, and the code among them imports nothing of ours."""
    (folder,) = map(Path, migrate.FOLDERS)
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        for path in folder.iterdir()
        if path.name in RELEASED
    }
    assert digests == RELEASED
    for path in (*folder.glob("*.py"), *LATER.glob("*.py")):
        names = {
            name.name if isinstance(node, ast.Import) else must(node.module)
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in node.names
        }
        ours = {name for name in names if name.startswith(("sess_", "sessiond"))}
        assert not ours, path.name


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
        assert caught.value.hint == f"upgrade with `{installation.upgrading()}`"
        assert caught.value.code == Exit.INDEX_UNUSABLE
    assert path.read_bytes() == before


def test_a_reader_cannot_write(tmp_path):
    """The read-only connection refuses every change."""
    open_writer(tmp_path / "index.db").close()
    db = open_reader(tmp_path / "index.db")
    with pytest.raises(apsw.ReadOnlyError):
        db.execute("DELETE FROM sources")
    db.close()


def test_a_reader_maps_little_of_the_index(tmp_path):
    """Whatever a scan read through a mapping counts as memory of the process."""
    open_writer(tmp_path / "index.db").close()
    with closing(open_reader(tmp_path / "index.db")) as db:
        assert db.pragma("mmap_size") <= 16 << 20
