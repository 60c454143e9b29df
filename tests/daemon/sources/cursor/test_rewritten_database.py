"""However the database file is written: the index tells the same."""

from __future__ import annotations

import os
import shutil
import sqlite3

from tests.cursor_databases import (
    HEADERS_TABLE,
    composer,
    encoded,
    put_conversation,
    put_header,
    small_talk,
)
from tests.daemon.sources.cursor.cursor_home import say


def told(cursor):
    dump = cursor.world.dump()
    return {part: dump[part] for part in ("events", "sessions", "records", "usage", "warnings")}


def test_vacuum_changes_nothing(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.delete("bubbleId:c:none")
    cursor.read()
    before = told(cursor)
    cursor.db.execute("VACUUM")
    assert cursor.read().records == 0
    assert told(cursor) == before


def test_other_rowids_change_nothing(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = told(cursor)
    cursor.db.execute("UPDATE cursorDiskKV SET rowid = 1000 - rowid")
    assert cursor.read().records == 0
    assert told(cursor) == before
    rows = dict(cursor.world.sql("SELECT key, place FROM database_rows WHERE key LIKE 'bubble%'"))
    query = "SELECT key, rowid FROM cursorDiskKV WHERE key LIKE 'bubble%'"
    assert rows == dict(cursor.db.execute(query))


def test_another_file_with_the_same_rows_changes_nothing(cursor, tmp_path):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = told(cursor)
    cursor.close()
    shutil.copy(cursor.path, tmp_path / "copy")
    os.replace(tmp_path / "copy", cursor.path)
    assert cursor.read().records == 0
    assert told(cursor) == before


def test_rows_that_are_updated_are_read_too(cursor):
    """Without a new rowid; the composer is written after its bubbles, as always."""
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    for key, value in (
        ("bubbleId:c:x-5", talk[4] | {"text": "another end"}),
        ("composerData:c", composer("c", talk, name="Renamed")),
    ):
        cursor.db.execute("UPDATE cursorDiskKV SET value = ? WHERE key = ?", (encoded(value), key))
    cursor.read()
    assert cursor.texts("c")[-1] == "another end"
    assert cursor.facts("c", "title") == "Renamed"


def test_upserts_are_read_too(cursor):
    talk = small_talk("x")
    cursor.db.execute("DROP TABLE cursorDiskKV")
    cursor.db.execute("CREATE TABLE cursorDiskKV (key TEXT PRIMARY KEY, value BLOB)")
    upsert = (
        "INSERT INTO cursorDiskKV VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
    )
    for text in ("one end", "another end"):
        for one in (*talk[:4], talk[4] | {"text": text}):
            cursor.db.execute(upsert, (f"bubbleId:c:{one['bubbleId']}", encoded(one)))
        cursor.db.execute(upsert, ("composerData:c", encoded(composer("c", talk))))
        cursor.read()
        assert cursor.texts("c")[-1] == text


def test_a_table_of_headers_that_appears_later_is_read(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, name=None), talk)
    cursor.db.execute("DROP TABLE composerHeaders")
    cursor.read()
    cursor.close()
    db = sqlite3.connect(cursor.path, isolation_level=None)
    db.execute(HEADERS_TABLE)
    put_header(db, composer("c", talk, name="By header"))
    db.close()
    cursor.read()
    assert cursor.facts("c", "title", "project") == ("By header", "/code/demo")
