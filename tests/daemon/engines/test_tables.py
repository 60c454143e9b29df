"""Databases with tables of conversations and of their records: only what changed is read."""

from __future__ import annotations

import os
import time
from contextlib import closing

import apsw
import pytest
from tests.conftest import opened

from sessiond.engines import databases
from sessiond.engines.databases import TableReader
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.sourcekit.base import (
    Conversation,
    Event,
    Layout,
    Listed,
    Record,
    SessionSpec,
    Source,
    Table,
)
from sessiond.writing.transaction import Store

LONG_AGO = 1_767_258_000_000  # no row that old is likely to change again


class Notes(Layout):
    """Notebooks and their notes; it notes itself what is asked of it."""

    def __init__(self):
        self.listed, self.fetched = [], []

    def tables(self, _db):
        return [Table("note", "book")]

    def heads(self, db):
        return [(name, rest) for name, *rest in db.rows("SELECT id, changed, title FROM book")]

    def whole(self, db, conversation):
        rows = db.rows("SELECT title FROM book WHERE id = ?", (conversation,))
        return Conversation(SessionSpec(conversation, title=rows[0][0])) if rows else None

    def listing(self, db, conversation):
        self.listed.append(conversation)
        return [
            Listed(name, (changed,), changed)
            for name, changed in db.rows(
                "SELECT id, changed FROM note WHERE book = ? ORDER BY id", (conversation,)
            )
        ]

    def fetch(self, db, _conversation, keys):
        self.fetched += keys
        for name, text, changed in db.many("SELECT id, text, changed FROM note WHERE id = ?", keys):
            yield name, {"id": name, "text": text, "at": changed}

    def record(self, value):
        record = Record("note", native_id=value["id"], ts=value["at"])
        record.events.append(Event("user", value["text"]))
        return record


class Shelf:
    """A database of notebooks, its writer, and the index of it."""

    def __init__(self, world):
        self.world = world
        self.layout = Notes()
        layout = self.layout

        class Library(Source):
            agent = "library"
            title = "Library"
            databases = TableReader(layout)

            def places(self):
                return [str(world.root / "shelf")]

            def classify(self, path):
                return "database" if path.endswith(".db") else None

        self.source = Library()
        (world.root / "shelf").mkdir()
        self.path = world.root / "shelf" / "notes.db"
        self.db = apsw.Connection(str(self.path))
        self.db.pragma("journal_mode", "wal")
        self.db.execute("CREATE TABLE book (id TEXT PRIMARY KEY, title TEXT, changed INTEGER)")
        self.db.execute(
            "CREATE TABLE note (id TEXT PRIMARY KEY, book TEXT, changed INTEGER, text TEXT)"
        )
        self.db.execute("CREATE TABLE settings (name TEXT)")
        self.db.execute("CREATE INDEX note_book ON note (book)")

    def book(self, name, *notes, at=LONG_AGO):
        self.db.execute("INSERT INTO book VALUES (?, ?, ?)", (name, f"Book {name}", at))
        for number, text in enumerate(notes, 1):
            self.note(f"{name}{number}", text, at=at)

    def note(self, name, text, at=LONG_AGO):
        self.db.execute(
            "INSERT INTO note VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET changed = ?3,"
            " text = ?4",
            (name, name[0], at, text),
        )

    def read(self):
        """One pass; what was listed, and what was fetched."""
        self.layout.listed.clear()
        self.layout.fetched.clear()
        # A write that the clock of the file system cannot tell from the last one is another matter.
        os.utime(self.path, ns=(time.time_ns(), time.time_ns() - 10**9))
        self.world.state.mkdir(mode=0o700, exist_ok=True)
        with closing(opened(self.world.state / "index.db")) as db:
            done = Ingest(Store(db)).reconcile(Territory([self.source]).places)
        assert done.skipped == []
        return list(self.layout.listed), list(self.layout.fetched)

    def shown(self, name):
        return [text for _, text, _ in self.world.shown(name)]

    def state(self, name):
        ((state,),) = self.world.sql(
            "SELECT state FROM sources WHERE path = ?", f"{self.path}#{name}"
        )
        return state


@pytest.fixture
def shelf(world):
    made = Shelf(world)
    yield made
    made.db.close()
    world.check()


def test_a_first_read_reads_everything_once(shelf):
    shelf.book("a", "apples", "pears")
    shelf.book("b", "bread")
    assert shelf.read() == (["a", "b"], ["a1", "a2", "b1"])
    assert (shelf.shown("a"), shelf.shown("b")) == (["apples", "pears"], ["bread"])


def test_what_did_not_change_is_not_read_again(shelf):
    """The file changed, but nothing in these tables did: no record is listed or fetched."""
    shelf.book("a", "apples", "pears")
    shelf.read()
    shelf.db.execute("INSERT INTO settings VALUES ('dark')")
    assert shelf.read() == ([], [])


def test_a_new_row_is_read_alone(shelf):
    """Its conversation is found by the rowid, and only this conversation is listed."""
    shelf.book("a", "apples", "pears")
    shelf.book("b", "bread")
    shelf.read()
    shelf.note("a3", "plums")
    assert shelf.read() == (["a"], ["a3"])
    assert shelf.shown("a") == ["apples", "pears", "plums"]


def test_a_changed_row_of_an_active_conversation_is_read_alone(shelf):
    """Only its own time shows that a row changed, so active conversations are listed each time."""
    now = time.time_ns() // 1_000_000
    shelf.book("a", "apples", "pears", at=now - 60_000)
    shelf.book("b", "bread")
    shelf.read()
    shelf.note("a1", "apple pie", at=now - 50_000)
    assert shelf.read() == (["a"], ["a1"])
    assert shelf.shown("a") == ["apple pie", "pears"]


def test_a_row_that_just_changed_is_compared_again(shelf):
    """It may change again within the resolution of its time, and then its time is the same."""
    now = time.time_ns() // 1_000_000
    shelf.book("a", "app", at=now)
    shelf.read()
    shelf.note("a1", "apples", at=now)
    assert shelf.read() == (["a"], ["a1"])
    assert shelf.shown("a") == ["apples"]


def test_a_new_head_reads_no_records(shelf):
    shelf.book("a", "apples")
    shelf.read()
    shelf.db.execute("UPDATE book SET title = 'Fruit', changed = changed + 1")
    assert shelf.read() == (["a"], [])
    assert shelf.world.sql("SELECT title FROM sessions") == [("Fruit",)]


def test_deleted_rows_are_found_by_counting(shelf):
    """A row that left its conversation is no longer shown."""
    shelf.book("a", "apples", "pears")
    shelf.read()
    shelf.db.execute("DELETE FROM note WHERE id = 'a1'")
    assert shelf.read() == (["a"], [])
    assert shelf.shown("a") == ["pears"]


def test_a_deleted_conversation_is_kept_and_may_return(shelf):
    shelf.book("a", "apples")
    shelf.book("b", "bread")
    shelf.read()
    shelf.db.execute("DELETE FROM book WHERE id = 'a'")
    shelf.db.execute("DELETE FROM note WHERE book = 'a'")
    assert shelf.read() == ([], [])
    assert (shelf.state("a"), shelf.state("b")) == ("gone", "live")
    assert shelf.shown("a") == ["apples"]
    shelf.book("a", "apples", "pears")
    assert shelf.read() == (["a"], ["a1", "a2"])
    assert shelf.state("a") == "live"
    assert shelf.shown("a") == ["apples", "pears"]


def test_a_large_database_is_counted_only_sometimes(shelf, monkeypatch):
    """Until then the next pass reads it again, although the file did not change."""
    monkeypatch.setattr(databases, "SMALL", 1)
    shelf.book("a", "apples", "pears")
    shelf.read()
    shelf.db.execute("DELETE FROM note WHERE id = 'a1'")
    assert shelf.read() == ([], [])
    assert shelf.shown("a") == ["apples", "pears"]
    monkeypatch.setattr(databases, "COUNT_EVERY", 0)
    assert shelf.read() == (["a"], [])
    assert shelf.shown("a") == ["pears"]


def test_reused_rowids_are_noticed(shelf, monkeypatch):
    """The last row was deleted and another one took its number: everything is counted."""
    monkeypatch.setattr(databases, "SMALL", 1)
    shelf.book("a", "apples")
    shelf.book("b", "bread", "butter")
    shelf.read()
    shelf.db.execute("DELETE FROM note WHERE book = 'b'")
    assert shelf.read()[0] == ["b"]
    shelf.note("a2", "pears")
    assert shelf.read() == (["a"], ["a2"])


def test_another_file_under_the_same_name_is_compared_whole(shelf):
    """A restored backup has its own rowids; records that are the same are not fetched."""
    shelf.book("a", "apples", "pears")
    shelf.read()
    shelf.db.execute("VACUUM INTO ?", (str(shelf.path) + "-copy",))
    shelf.db.close()
    os.replace(str(shelf.path) + "-copy", shelf.path)
    shelf.db = apsw.Connection(str(shelf.path))
    assert shelf.read() == (["a"], [])


def test_a_long_conversation_is_handed_over_in_pieces(shelf, monkeypatch):
    """All of it arrives, in order."""
    monkeypatch.setattr(databases, "_PIECE", 50)
    monkeypatch.setattr(databases, "_BATCH", 2)
    shelf.book("a", *[f"line {number}" for number in range(1, 10)])
    shelf.read()
    assert shelf.shown("a") == [f"line {number}" for number in range(1, 10)]
