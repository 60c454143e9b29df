"""Indexes of every earlier version, made by the programs of their time, become today's.

What may differ from a fresh load: the numbers of rows, when and where files were read, and which
sources were read first. Everything that is said about sessions may not.
"""

from __future__ import annotations

import os
import pty
import shutil
import socket
import subprocess
from contextlib import closing

import apsw
import pytest
from tests.conftest import BIN, World
from tests.schema.stored import corpus, make
from tests.waiting import LIMIT

from sess_schema import migrate
from sess_schema.connection import open_writer

MIGRATIONS = migrate.migrations()
VERSIONS = range(1, migrate.latest())
WORDS = ("React", "steeping", "naive", "café", "418", "kettle*", '"is\ue000error"', "Dampf")

_EVENT = "s.native_id, t.line, e.block"
_OF_EVENT = (
    "JOIN events e ON e.id = x.event_id JOIN sessions s ON s.id = e.session_id"
    " JOIN turns t ON t.id = e.turn_id"
)
_OF_SESSION = "JOIN sessions s ON s.id = x.session_id"
SAID = {
    "events": (
        f"SELECT {_EVENT}, e.unjoined, e.call_key, e.chars, e.overflow, e.result_pointer, r.line,"
        " o.native_id"
        " FROM events e JOIN sessions s ON s.id = e.session_id JOIN turns t ON t.id = e.turn_id"
        " LEFT JOIN turns r ON r.id = e.result_turn_id LEFT JOIN sessions o ON o.id = r.session_id"
    ),
    "turns": (
        "SELECT s.native_id, t.line, t.native_key FROM turns t"
        " JOIN sessions s ON s.id = t.session_id"
    ),
    "events.kind": (
        f"SELECT {_EVENT}, e.kind FROM events e JOIN sessions s ON s.id = e.session_id"
        " JOIN turns t ON t.id = e.turn_id"
    ),
    "edits": f"SELECT {_EVENT}, x.number, x.path, x.added, x.removed FROM edits x {_OF_EVENT}",
    "files": f"SELECT {_EVENT}, x.path, x.action FROM files x {_OF_EVENT}",
    "commits": f"SELECT {_EVENT}, x.sha, x.branch, x.subject FROM commits x {_OF_EVENT}",
    "links": (
        "SELECT s.native_id, p.native_id, s.call_id, s.link_rank, s.agent_type, s.mode,"
        " s.title_rank, s.first_prompt, s.project_from"
        " FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id"
    ),
    "usage": (
        "SELECT s.native_id, t.line, x.response_uid, x.message_id, x.model, x.ts, x.stop_reason,"
        " x.input_tokens,"
        " x.output_tokens, x.cache_write_tokens, x.cache_write_1h_tokens, x.cache_read_tokens,"
        " x.sidechain, x.counted, x.cost_nano, x.cost_source, x.saved_nano, x.chars"
        f" FROM usage x JOIN turns t ON t.id = x.turn_id {_OF_SESSION}"
    ),
    "usage_sums": f"SELECT s.native_id, x.* FROM usage_sums x {_OF_SESSION}",
    "event_sums": f"SELECT s.native_id, x.* FROM event_sums x {_OF_SESSION}",
    "spans": f"SELECT s.native_id, x.* FROM spans x {_OF_SESSION}",
    "leaf_titles": f"SELECT s.native_id, x.* FROM leaf_titles x {_OF_SESSION}",
}


def said(world):
    """Everything that the index says, and what is found in it."""
    found = world.dump()
    for name, query in SAID.items():
        rows = [dict(zip(columns(world, query), row, strict=True)) for row in world.sql(query)]
        for row in rows:
            row.pop("session_id", None)
        found[f"all {name}"] = sorted(rows, key=repr)
    found["found"] = {word: sorted(world.found(word)) for word in WORDS}
    return found


def columns(world, query):
    with closing(apsw.Connection(str(world.state / "index.db"))) as db:
        return [name for name, *_ in db.execute(f"{query} LIMIT 1").description]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """What today's program makes of the same files."""
    world = World(tmp_path_factory.mktemp("fresh"))
    corpus.write(world.root)
    world.run("sessiond", "sync", check=0)
    found = said(world)
    assert {row["unjoined"] for row in found["all events"]} == {None, "orphan", "answer"}
    assert {row[6] for row in found["events"]} == {None, "ok", "error", "denied", "pending"}
    assert all(found["found"].values())
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_an_index_of_any_version_becomes_what_a_fresh_load_makes(world, fresh, version):
    """One sync upgrades it in place and reads nothing twice; events keep their numbers."""
    index = make.unpack(version, world.root)
    with closing(apsw.Connection(str(index))) as db:
        assert db.pragma("user_version") == version
        before = list(db.execute("SELECT id, text, input, output FROM event_texts ORDER BY id"))
        read = db.execute("SELECT count(*) FROM turns").get
    world.run("sessiond", "sync", check=0)
    assert said(world) == fresh
    after = world.sql("SELECT id, text, input, output FROM event_texts ORDER BY id")
    assert after[: len(before)] == before
    assert world.sql("SELECT count(*) FROM turns WHERE retired > 0") == [(0,)]
    assert read in (51, 59)  # without and with Cursor's conversation
    world.check()


def test_what_is_read_otherwise_today_changes_also_where_the_files_are_gone(world):
    """An index of schema 6 gave a denied call the time for which the person was asked."""
    index = make.unpack(6, world.root)
    taken = "SELECT duration_ms FROM events WHERE status = 'denied' AND call_id = 'call_denied'"
    with closing(apsw.Connection(str(index))) as db:
        assert db.execute(taken).get == 60_000
        events = db.execute("SELECT count(*) FROM events").get
    shutil.rmtree(world.projects)
    world.run("sessiond", "sync", check=0)
    assert world.sql(taken) == [(None,)]
    assert world.sql("SELECT count(*) FROM events") == [(events,)]
    assert world.sql("SELECT DISTINCT state FROM sources WHERE agent = 'claude'") == [("gone",)]
    world.check()


@pytest.mark.parametrize("version", [3, 4])
def test_migration_5_sums_as_the_program_of_its_time(tmp_path, monkeypatch, version):
    """Upgraded to schema 5 and no further, an index has the sums that version 5 kept itself.

    What the cache saved is known after the next pricing only.
    """
    monkeypatch.setattr(migrate, "migrations", lambda: MIGRATIONS[:5])
    upgraded = make.unpack(version, tmp_path / "upgraded")
    open_writer(upgraded).close()
    kept = contents(make.unpack(5, tmp_path / "kept"))
    made = contents(upgraded)
    assert made["user_version"] == 5
    assert made["event_sums"] == kept["event_sums"]
    assert made["spans"] == kept["spans"]
    assert made["stale_sums"] == []
    if version == 4:
        assert made["usage_sums"] == [(*row[:11], 0, *row[12:]) for row in kept["usage_sums"]]


def test_every_version_before_todays_is_stored():
    """A migration that is added comes with an index of the version before it."""
    assert [version for version in VERSIONS if make.stored(version).exists()] == [*VERSIONS]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgrade_that_fails_leaves_the_index_as_it_was(world, version, monkeypatch):
    """An error in the last migration takes the ones before it back, too."""
    index = make.unpack(version, world.root)
    before = contents(index)
    *good, (number, name, sql) = migrate.migrations()
    broken = [*good, (number, name, f"{sql}; SELECT * FROM nowhere;")]
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda: broken)
        with pytest.raises(Exception, match="no such table: nowhere"):
            open_writer(index)
    assert contents(index) == before
    open_writer(index).close()
    assert contents(index)["user_version"] == migrate.latest()


def contents(index):
    """Every row of every table that can be read without FTS5's own."""
    with closing(apsw.Connection(str(index))) as db:
        names = db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
        ).fetchall()
        rows = {name: list(db.execute(f"SELECT * FROM {name}")) for (name,) in names}
        return rows | {"user_version": db.pragma("user_version")}


def test_a_person_sees_the_upgrade_and_then_the_result(world):
    """On a terminal the step is one line that is wiped out again; in a pipe there is nothing."""
    make.unpack(1, world.root / "piped")
    piped = {**world.env, "SESSIOND_HOME": str(world.root / "piped" / "state")}
    quiet = subprocess.run([BIN / "sessiond", "sync"], env=piped, capture_output=True, check=True)
    assert quiet.stderr == b""
    make.unpack(1, world.root)
    outer, inner = pty.openpty()
    subprocess.run(
        [BIN / "sessiond", "sync"],
        env=world.env,
        stdout=subprocess.DEVNULL,
        stderr=inner,
        check=True,
    )
    os.close(inner)
    drawn = os.read(outer, 65536).decode()
    os.close(outer)
    assert drawn.startswith("\r\x1b[Kupgrading the index (0002_words) ...")
    assert drawn.endswith("\r\x1b[K")


def test_the_service_manager_hears_of_an_upgrade_before_it_is_ready(world):
    """The start may take as long as it takes: the manager is asked for more time."""
    make.unpack(1, world.root)
    heard = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        address = world.root / "notify"
        manager.bind(str(address))
        manager.settimeout(30)
        world.env["NOTIFY_SOCKET"] = str(address)
        process = world.start()
        try:
            while not heard or "READY=1" not in heard[-1]:
                heard.append(manager.recv(4096).decode().split("\n"))
        finally:
            process.terminate()
            process.wait(LIMIT)
    assert heard[0] == [
        "EXTEND_TIMEOUT_USEC=120000000",
        "WATCHDOG=1",
        "STATUS=upgrading the index (0002_words)",
    ]


def test_an_upgrade_takes_times_before_2000_for_none(tmp_path):
    """What an earlier version dated 1970 has no date, and its session the dates of the rest."""
    index = make.unpack(6, tmp_path)
    with closing(apsw.Connection(str(index))) as db:
        (key, turn, ended) = db.execute(
            "SELECT s.id, min(t.id), s.ended_at FROM sessions s JOIN turns t ON t.session_id = s.id"
            " WHERE s.turns > 3 AND t.ts IS NOT NULL GROUP BY s.id LIMIT 1"
        ).fetchone()
        for table, column in (("turns", "id"), ("events", "turn_id"), ("usage", "turn_id")):
            db.execute(f"UPDATE {table} SET ts = 5 WHERE {column} = ?", (turn,))
        db.execute("UPDATE sessions SET opened_at = 5, started_at = 5 WHERE id = ?", (key,))
    with closing(open_writer(index)) as db:
        assert db.execute("SELECT ts FROM turns WHERE id = ?", (turn,)).get is None
        for table, column in (("turns", "ts"), ("events", "ts"), ("usage", "ts")):
            assert db.execute(f"SELECT count(*) FROM {table} WHERE {column} < 1e11").get == 0
        assert db.execute("SELECT min(first_ts) FROM spans").get > 1e11
        opened, started, last = db.execute(
            "SELECT opened_at, started_at, ended_at FROM sessions WHERE id = ?", (key,)
        ).fetchone()
        first = db.execute("SELECT min(ts) FROM turns WHERE session_id = ?", (key,)).get
    assert (opened, started, last) == (first, first, ended)
