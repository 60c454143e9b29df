"""A home in which Cursor keeps its global database, and the index of it."""

from __future__ import annotations

import json
from contextlib import closing

from tests.conftest import opened
from tests.cursor_databases import (
    CREATED,
    bubble,
    global_database,
    make_global,
)

from sess_schema.connection import open_reader
from sess_schema.queries.search import Search
from sess_schema.session import Reader
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.sources.cursor import CursorSource
from sessiond.writing.transaction import Store

FACTS = (
    "kind", "project", "title", "models", "mode", "started_at", "ended_at", "events", "prompts",
    "tool_calls",
)  # fmt: skip


class Cursor:
    """Cursor's global database in the world's home, and the index of it."""

    def __init__(self, world):
        self.world = world
        self.path = global_database(world.root)
        self._db = None

    @property
    def db(self):
        self._db = self._db or make_global(self.path, headers=True)
        return self._db

    def close(self):
        if self._db is not None:
            self._db.close()
            self._db = None

    def read(self):
        """A pass of a new process over the places of Cursor."""
        self.world.state.mkdir(mode=0o700, exist_ok=True)
        source = CursorSource(environ={"HOME": str(self.world.root)})
        with closing(opened(self.world.state / "index.db")) as db:
            return Ingest(Store(db)).reconcile(Territory([source]).places)

    def delete(self, key):
        self.db.execute("DELETE FROM cursorDiskKV WHERE key = ?", (key,))

    def entries(self, session):
        with closing(open_reader(self.world.state / "index.db")) as db:
            key = db.execute("SELECT id FROM sessions WHERE native_id = ?", (session,)).get
            return list(Reader(db, key).entries())

    def shown(self, session):
        """(type, what is said or came back, status) in order."""
        return [(e.type, e.text or e.output, e.status) for e in self.entries(session)]

    def texts(self, session):
        return [text for _, text, _ in self.shown(session)]

    def found(self, words):
        """Conversations in which something is found, once for each hit."""
        with closing(open_reader(self.world.state / "index.db")) as db:
            return [hit.session for hit in Search(words).hits(db)]

    def facts(self, session, *names):
        (row,) = self.world.sql(
            f"SELECT {', '.join(names or FACTS)} FROM sessions WHERE native_id = ?", session
        )
        return row[0] if len(names) == 1 else row

    def parent(self, session):
        rows = self.world.sql(
            "SELECT p.native_id FROM sessions s JOIN sessions p ON p.id = s.parent_id"
            " WHERE s.native_id = ?",
            session,
        )
        return rows[0][0] if rows else None

    def state(self, session):
        return self.world.sql("SELECT state FROM sources WHERE path = ?", f"{self.path}#{session}")[
            0
        ][0]

    def lines(self, session):
        raw = self.world.restored(f"{self.path}#{session}")
        return [json.loads(line) for line in raw.splitlines()]


def say(*texts, at=CREATED):
    """Answers b1, b2, ... a second apart."""
    return [bubble(f"b{n}", text=text, at=at + 1000 * n) for n, text in enumerate(texts, 1)]


def ids(cursor, session):
    return [e.id for e in cursor.entries(session)]
