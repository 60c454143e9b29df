"""Whatever was done to a database of Cursor, and whenever it was read: in the end one index."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.conftest import opened
from tests.cursor_databases import (
    CREATED,
    bubble,
    composer,
    encoded,
    global_database,
    make_global,
    prompt,
    put,
    put_bubble,
    put_composer,
    put_header,
    reading,
    terminal,
    thought,
)

from sess_schema import archive
from sess_schema.archive import RecordReader
from sess_schema.connection import open_reader, open_writer
from sess_schema.session import Reader
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.sources.cursor import CursorSource
from sessiond.writing.transaction import Store

pytestmark = pytest.mark.slow

COMPOSERS, BUBBLES = ("c0", "c1", "c2"), 5
KINDS = (
    "prompt", "text", "thought", "ok", "failed", "running", "file", "dateless", "wrapped", "empty",
    "null", "broken", "renamed",
)  # fmt: skip
INFO = {"parentComposerId": "c0", "subagentTypeName": "explore", "toolCallId": "call_1"}
SETTINGS = settings(
    max_examples=amount(8, 75),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),  # shrinking takes minutes
)


def value_of(kind, composer_id, number, version):
    """A bubble of some kind; the version is in whatever it says."""
    name = f"{composer_id}-b{number}"
    words = f"{name} says {kind} v{version}"
    at = CREATED + 1000 * number
    match kind:
        case "prompt":
            return prompt(name, words, at=at)
        case "thought":
            return thought(name, words, at=at + 7 * version)
        case "ok":
            return terminal(name, f"make v{version}", words, at=at)
        case "failed":
            return terminal(name, f"make v{version}", status="error", error=words, at=at)
        case "running":
            return terminal(name, f"make v{version}", status="loading", at=at)
        case "file":
            return reading(name, f"/code/demo/{composer_id}/part{version}.py", words, at=at)
        case "dateless":
            return {k: v for k, v in bubble(name, text=words).items() if k != "createdAt"}
        case "wrapped":
            return encoded(encoded(bubble(name, text=words, at=at)))
        case "empty":
            return bubble(name, at=at)
        case "null":
            return None
        case "broken":
            return f'{{"text": "{words}'
        case "renamed":
            return bubble(f"{name}-own", text=words, at=at)
    return bubble(name, text=words, at=at)


class Cursor:
    """A global database under change, and indexes of it."""

    def __init__(self, root):
        self.root = root
        self.path = global_database(root)
        self.db = make_global(self.path, headers=True)
        self.in_place = False
        self.names = dict.fromkeys(COMPOSERS)

    def close(self):
        self.db.close()

    def execute(self, sql, *values):
        return list(self.db.execute(sql, values))

    # -- what may happen to it

    def bubble(self, composer_id, number, kind, version):
        """As Cursor does it: the row gets a new rowid."""
        put(self.db, *self._row(composer_id, number, kind, version))

    def bubble_in_place(self, composer_id, number, kind, version):
        """As nobody promised that Cursor never does it."""
        key, value = self._row(composer_id, number, kind, version)
        self.in_place = True
        self.execute("UPDATE cursorDiskKV SET value = ? WHERE key = ?", encoded(value), key)

    def _row(self, composer_id, number, kind, version):
        key = f"bubbleId:{composer_id}:{composer_id}-b{number}"
        return key, value_of(kind, composer_id, number, version)

    def delete(self, composer_id, number):
        key = f"bubbleId:{composer_id}:{composer_id}-b{number}"
        self.execute("DELETE FROM cursorDiskKV WHERE key = ?", key)

    def write_composer(self, composer_id, numbers, version):
        """A conversation with some headers, which may name what is not there."""
        put_composer(self.db, self._composer(composer_id, numbers, version))

    def _composer(self, composer_id, numbers, version):
        """Once it has a name it keeps one; c0 names c1 as its subagent, c2 names c0."""
        heads = [{"bubbleId": f"{composer_id}-b{number}", "type": 2} for number in numbers]
        self.names[composer_id] = f"Name {version}" if version else self.names[composer_id]
        more: dict[str, dict[str, Any]] = {
            "c0": {"subagentComposerIds": ["c1"]},
            "c1": {},
            "c2": {"subagentInfo": INFO},
        }
        return composer(composer_id, heads, name=self.names[composer_id], **more[composer_id])

    def composer_in_place(self, composer_id, numbers, version):
        value = self._composer(composer_id, numbers, version)
        self.in_place = True
        self.execute(
            "UPDATE cursorDiskKV SET value = ? WHERE key = ?",
            encoded(value),
            f"composerData:{composer_id}",
        )

    def drop_composer(self, composer_id):
        self.execute("DELETE FROM cursorDiskKV WHERE key = ?", f"composerData:{composer_id}")

    def drop_conversation(self, composer_id):
        self.drop_composer(composer_id)
        self.execute(
            "DELETE FROM cursorDiskKV WHERE key >= ? AND key < ?",
            f"bubbleId:{composer_id}:",
            f"bubbleId:{composer_id};",
        )

    def header(self, composer_id, version):
        more = {"subagentInfo": INFO} if composer_id == "c2" else {}
        put_header(self.db, composer(composer_id, name=f"Header {version}", **more))

    def reuse(self, composer_id, number, kind, version):
        """The newest row is deleted, and the next one gets its rowid."""
        self.execute("DELETE FROM cursorDiskKV WHERE rowid = (SELECT max(rowid) FROM cursorDiskKV)")
        self.bubble(composer_id, number, kind, version)

    def renumber(self):
        """What VACUUM may do, and a copy of the table does."""
        self.in_place = True  # a changed row may have its old number again
        self.execute("UPDATE cursorDiskKV SET rowid = -rowid")
        rows = self.execute("SELECT rowid FROM cursorDiskKV ORDER BY key")
        for number, (rowid,) in enumerate(rows, 1):
            self.execute("UPDATE cursorDiskKV SET rowid = ? WHERE rowid = ?", number, rowid)

    def vacuum(self):
        self.execute("VACUUM")

    # -- reading it

    def read(self, index="index.db"):
        """A pass of a new process."""
        source = CursorSource(environ={"HOME": str(self.root)}, platform="linux")
        with closing(opened(self.root / index)) as db:
            summary = Ingest(Store(db)).reconcile(Territory([source]).places)
            assert summary.skipped == []
            return summary

    def settle(self):
        """The passes after which the index must tell the truth."""
        if self.in_place:
            for key, value in self.execute(
                "SELECT key, value FROM cursorDiskKV WHERE key LIKE 'composerData:%'"
            ):
                put(self.db, key, value)
        self.read()

    def living(self):
        """Conversations that have a row of their own and something said in it."""
        bubbles = self.execute("SELECT key, value FROM cursorDiskKV WHERE key LIKE 'bubbleId:%'")
        said = {key.split(":")[1] for key, value in bubbles if value is not None}
        rows = self.execute("SELECT key FROM cursorDiskKV WHERE key LIKE 'composerData:%'")
        return sorted(said & {key.partition(":")[2] for (key,) in rows})


@pytest.fixture(autouse=True)
def _settled(monkeypatch):
    """Nobody writes while we read, so what was read counts at once."""
    monkeypatch.setattr("sessiond.engines.databases.CLOCK_STEP_NS", 0)


def told(cursor, index):
    """What is shown and restored, by conversation."""
    with closing(open_reader(cursor.root / index)) as db:
        found = {}
        for key, name in list(
            db.execute("SELECT id, native_id FROM sessions WHERE agent = 'cursor'")
        ):
            shown = [
                (
                    db.execute(
                        "SELECT t.native_id FROM events e JOIN records t ON t.id = e.record_id"
                        " WHERE e.id = ?",
                        (entry.id,),
                    ).get,
                    *(entry.type, entry.label, entry.tool, entry.status, entry.ts, entry.summary),
                    *(entry.call_id, entry.pointer, entry.text, entry.input, entry.output),
                    RecordReader(db).bytes_of(entry.place),
                )
                for entry in Reader(db, key).entries()
            ]
            part = db.execute(
                "SELECT id FROM sources WHERE path = ?", (f"{cursor.path}#{name}",)
            ).get
            lines = b"".join(archive.source_bytes(db, part)) if part else b""
            found[name] = shown, lines.splitlines()
        return found


def facts(cursor, index, columns):
    with closing(open_reader(cursor.root / index)) as db:
        rows = db.execute(
            f"SELECT s.native_id, {columns} FROM sessions s LEFT JOIN sessions p"
            " ON p.id = s.parent_id WHERE s.agent = 'cursor'"
        )
        return {name: rest for name, *rest in rows}


def assert_sound(cursor, index="index.db"):
    """Each row of the database is one live record, and each live record one row."""
    with closing(open_writer(cursor.root / index)) as db:
        assert db.pragma("integrity_check") == "ok"
        db.execute("INSERT INTO event_index (event_index, rank) VALUES ('integrity-check', 1)")
        assert_once(db)
        known = {
            key: rest
            for key, *rest in db.execute(
                "SELECT r.key, r.place, r.record_id, t.retired, s.native_id FROM database_rows r"
                " LEFT JOIN records t ON t.id = r.record_id"
                " LEFT JOIN sessions s ON s.id = t.session_id"
            )
        }
        for name in cursor.living():
            prefix = f"bubbleId:{name}:"
            rows = cursor.execute(
                "SELECT key, rowid, value FROM cursorDiskKV WHERE key >= ? AND key < ?",
                prefix,
                f"bubbleId:{name};",
            )
            assert {key for key in known if key.startswith(prefix)} == {key for key, *_ in rows}
            for key, rowid, value in rows:
                place, record, retired, session = known[key]
                assert place == rowid
                assert (record is None) == (value is None), key
                assert record is None or (retired, session) == (0, name)
            path = f"{cursor.path}#{name}"
            live = (
                "SELECT t.id FROM records t JOIN sources p ON p.id = t.source_id WHERE p.path = ?"
            )
            records = {record for (record,) in db.execute(f"{live} AND t.retired = 0", (path,))}
            assert records == {record for key, (_, record, *_) in known.items()
                               if record and key.startswith(prefix)}  # fmt: skip


def assert_once(db):
    twice = "SELECT session_id, native_id FROM records WHERE retired = 0 GROUP BY 1, 2"
    assert list(db.execute(f"{twice} HAVING count(*) > 1")) == []
    twice = "SELECT record_id, block FROM events WHERE retired = 0 GROUP BY 1, 2"
    assert list(db.execute(f"{twice} HAVING count(*) > 1")) == []
    twice = "SELECT source_id, offset FROM chunks WHERE retired = 0 GROUP BY 1, 2"
    assert list(db.execute(f"{twice} HAVING count(*) > 1")) == []


names = st.sampled_from(COMPOSERS)
numbers = st.integers(0, BUBBLES - 1)
versions = st.integers(0, 3)
written = (names, numbers, st.sampled_from(KINDS), versions)
orders = st.lists(numbers, unique=True)
READ = st.tuples(st.just("read"))
INSERTS = [
    st.tuples(st.just("bubble"), *written),
    st.tuples(st.just("bubble"), *written),
    st.tuples(st.just("delete"), names, numbers),
    st.tuples(st.just("write_composer"), names, st.permutations(range(BUBBLES)), versions),
    st.tuples(st.just("write_composer"), names, orders, versions),
    st.tuples(st.just("drop_composer"), names),
    st.tuples(st.just("drop_conversation"), names),
    st.tuples(st.just("reuse"), *written),
    st.tuples(st.just("renumber")),
    st.tuples(st.just("vacuum")),
    READ,
    READ,
]
HEADER = st.tuples(st.just("header"), names, versions)
UPDATES = [
    st.tuples(st.just("bubble_in_place"), *written),
    st.tuples(st.just("composer_in_place"), names, orders, versions),
]


def play(cursor, steps):
    """Begin with a conversation or two, then let things happen."""
    for name in COMPOSERS[:2]:
        talk = [value_of(kind, name, n, 0) for n, kind in enumerate(("prompt", "text", "ok"))]
        for one in talk:
            put_bubble(cursor.db, name, one)
        cursor.write_composer(name, range(len(talk)), 0)
    for operation, *values in steps:
        getattr(cursor, operation)(*values)
    cursor.settle()
    cursor.read("fresh.db")


def compare(steps):
    with tempfile.TemporaryDirectory() as folder, closing(Cursor(Path(folder))) as cursor:
        play(cursor, steps)
        assert_sound(cursor, "fresh.db")
        found, fresh = told(cursor, "index.db"), told(cursor, "fresh.db")
        for name in cursor.living():
            assert found[name][0] == fresh[name][0], name
            assert found[name][1] == fresh[name][1], name
        columns = "s.started_at, s.ended_at, s.events, s.prompts, s.tool_calls, s.mode"
        before, after = (facts(cursor, index, columns) for index in ("index.db", "fresh.db"))
        for name in cursor.living():
            assert before[name] == after[name], name
        assert_sound(cursor)


@SETTINGS
@given(steps=st.lists(st.one_of(INSERTS), min_size=10, max_size=25))
def test_any_writes_and_any_reads_give_what_one_reading_gives(steps):
    compare(steps)


@SETTINGS
@given(steps=st.lists(st.one_of(INSERTS + UPDATES), min_size=10, max_size=25))
def test_writes_that_keep_their_rowids_are_found_too(steps):
    compare(steps)


@SETTINGS
@given(steps=st.lists(st.one_of([*INSERTS, HEADER]), min_size=10, max_size=25))
def test_what_is_known_about_a_conversation_does_not_depend_on_the_reads(steps):
    """Title, project, parent; what a conversation said of itself is not taken back by Cursor."""
    with tempfile.TemporaryDirectory() as folder, closing(Cursor(Path(folder))) as cursor:
        play(cursor, steps)
        columns = "s.title, s.project, s.models, s.kind, p.native_id, s.agent_type, s.call_id"
        found, fresh = (facts(cursor, index, columns) for index in ("index.db", "fresh.db"))
        living = cursor.living()
        for name in living if "c0" in living else ():
            assert found[name] == fresh[name], name
