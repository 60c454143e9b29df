"""Faulty Cursor databases: each is reported, affects nothing else, and is read once repaired."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tests.cursor_databases import (
    bubble,
    composer,
    global_database,
    make_global,
    put,
    put_bubble,
    put_composer,
    put_conversation,
    small_talk,
)
from tests.must import must
from tests.waiting import LIMIT, wait_until

from sess_common.errors import SessError

BIN = os.path.dirname(sys.executable)
LOCKER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
db.execute("INSERT INTO ItemTable VALUES ('held', 'open')")
print("locked", flush=True)
sys.stdin.read()
db.execute("ROLLBACK")
"""
WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", sys.argv[2:4])
print("written", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def good(world):
    """A transcript of another agent in the same home."""
    t = world.transcript()
    t.append(t.prompt("good words"))
    return t


@pytest.fixture
def database(world):
    """A database with one conversation, closed; a rollback journal, so that it can be locked."""
    return make_database(global_database(world.root), "c1", journal="delete")


@pytest.fixture
def start_plain(world, plain_user):
    """A daemon to which permissions apply, even when the tests run as root."""
    started = []

    def start():
        process = world.start(preexec_fn=plain_user)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def make_database(path, *names, journal="wal"):
    db = make_global(path, journal=journal)
    for name in names:
        talk = small_talk(name)
        put_conversation(db, composer(name, talk, name=f"Talk {name}"), talk)
    db.close()
    return path


# -- faults; each lasts for its `with` block


@contextmanager
def child(program, *arguments):
    """Another program that has the database open."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        must(process.stdout).readline()
        yield process


@contextmanager
def locked(path):
    with child(LOCKER, path):
        yield


@contextmanager
def forbidden(path):
    os.chmod(path, 0)
    yield
    os.chmod(path, 0o600)


@contextmanager
def other_bytes(path, change):
    """Replace the file's bytes for a while, then restore them."""
    raw = path.read_bytes()
    path.write_bytes(change(raw))
    yield
    path.write_bytes(raw)


def no_database(path):
    return other_bytes(path, lambda _: b"just some text, and a lot of it\n" * 400)


def cut_off(path):
    return other_bytes(path, lambda raw: raw[: len(raw) // 2])


def damaged(path):
    return other_bytes(path, lambda raw: raw[:4096] + b"\xaa" * (len(raw) - 4096))


@contextmanager
def a_directory(path):
    aside = path.with_name("aside")
    path.rename(aside)
    path.mkdir()
    yield
    path.rmdir()
    aside.rename(path)


FAULTS = {
    "locked": (locked, "is locked by another program"),
    "forbidden": (forbidden, "permission denied"),
    "no database": (no_database, "is not a database"),
    "cut off": (cut_off, "is a damaged database"),
    "damaged": (damaged, "is a damaged database"),
}
EACH = pytest.mark.parametrize("name", FAULTS)


# -- reports


def ready(world):
    """Whether the daemon has created its index."""
    try:
        world.sql("SELECT 1")
    except SessError:
        return False
    return True


def status_of(world, path):
    """The line of `sessiond status` about one source."""
    done = world.run("sessiond", "status", "--json", "--all")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        if line["kind"] == "source" and line["path"] == str(path):
            return line
    return None


def assert_reported(world, path, reason):
    """Status names it with the reason; the other transcript is indexed."""
    source = status_of(world, path)
    assert source is not None
    assert (source["agent"], source["state"]) == ("cursor", "unreadable")
    assert source["error"] == reason
    assert world.found("good") == ["good words"]


def assert_diagnosed(world, reason):
    """`sess doctor` names it, too."""
    done = world.run("sess", "doctor", "--json")
    checks = {check["check"]: check for check in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 5
    assert checks["sources"]["state"] == "warn"
    assert any(reason in detail for detail in checks["sources"]["details"])


def assert_well(world, path, names=("c1",)):
    """Every conversation is there once, and no problem is reported."""
    source = status_of(world, path)
    assert source is not None
    assert (source["state"], source["error"]) == ("live", None)
    for name in names:
        assert [type_ for type_, *_ in world.shown(name)] == [
            "user", "thinking", "tool_use", "tool_use", "assistant",
        ]  # fmt: skip
        assert listed(world)[name] is False
    assert world.found("good") == ["good words"]
    world.check()


def listed(world):
    """Whether the source of each conversation is gone."""
    done = world.run("sess", "list", "--no-sync", "--all", "--json", "--limit", "0", check=0)
    rows = map(json.loads, done.stdout.splitlines())
    return {row["session"]: row["source_gone"] for row in rows if row["agent"] == "cursor"}


@EACH
def test_a_database_in_trouble_from_the_start(world, good, database, plain_user, name):
    """`sync` reports it each time with exit 5; afterwards the conversation is read."""
    fault, reason = FAULTS[name]
    with fault(database):
        for _ in range(2):
            done = world.run("sessiond", "sync", check=5, preexec_fn=plain_user)
            assert f'sessiond: skipped "{database}": {reason}' in done.stderr.splitlines()
            assert_reported(world, database, reason)
        assert_diagnosed(world, reason)
    assert world.run("sessiond", "sync", check=0, preexec_fn=plain_user).stderr == ""
    assert_well(world, database)


@EACH
def test_a_database_that_gets_into_trouble(world, good, database, plain_user, name):
    """What was read before stays unchanged and is not marked as gone."""
    world.run("sessiond", "sync", check=0)
    fault, reason = FAULTS[name]
    with fault(database):
        os.utime(database)
        good.append(good.prompt("more"))
        done = world.run("sessiond", "sync", check=5, preexec_fn=plain_user)
        assert f'sessiond: skipped "{database}": {reason}' in done.stderr.splitlines()
        assert_reported(world, database, reason)
        assert world.found("more") == ["more"]
        assert len(world.shown("c1")) == 5
        assert listed(world) == {"c1": False}
    world.run("sessiond", "sync", check=0, preexec_fn=plain_user)
    assert_well(world, database)


@EACH
def test_the_daemon_tries_again_by_itself(world, good, database, start_plain, name):
    """It keeps reading other sources, and reads the database soon after the fault ends."""
    fault, reason = FAULTS[name]
    with fault(database):
        process = start_plain()
        wait_until((world.state / "status.json").exists)
        wait_until(lambda: ready(world) and world.found("good"))
        wait_until(lambda: (status_of(world, database) or {}).get("error"))
        assert_reported(world, database, reason)
        good.append(good.prompt("meanwhile"))
        wait_until(lambda: world.found("meanwhile"))
    wait_until(lambda: world.shown("c1"), what="it was not tried again")
    wait_until(lambda: status_of(world, database)["state"] == "live")
    assert process.poll() is None
    process.terminate()
    assert process.wait(LIMIT) == 0
    assert world.found("good") == ["good words"]
    assert len(world.shown("c1")) == 5
    log = (world.state / "sessiond.log").read_text()
    assert "Traceback" not in log
    assert sum("state.vscdb" in line for line in log.splitlines()) < 20


def test_a_directory_in_its_place_is_no_database(world, good, database):
    """Nothing fails; afterwards the conversation is as before."""
    world.run("sessiond", "sync", check=0)
    with a_directory(database):
        world.run("sessiond", "sync")
        assert len(world.shown("c1")) == 5
        assert world.found("good") == ["good words"]
    world.run("sessiond", "sync", check=0)
    assert_well(world, database)


def test_a_missing_database_is_gone_until_it_comes_back(world, good, database, tmp_path):
    """Its conversations stay, marked as gone; when the file returns, they are the same."""
    world.run("sessiond", "sync", check=0)
    before = world.shown("c1")
    kept = tmp_path / "kept.vscdb"
    shutil.move(database, kept)
    world.run("sessiond", "sync", check=0)
    assert status_of(world, database)["state"] == "gone"
    assert listed(world) == {"c1": True}
    assert world.shown("c1") == before
    shutil.copy(kept, database)
    world.run("sessiond", "sync", check=0)
    assert_well(world, database)
    assert world.sql("SELECT count(*) FROM records WHERE native_id = 'c1-1'") == [(1,)]


def test_another_file_in_its_place_is_read_as_such(world, good, database, tmp_path):
    """What only the old file had is gone, what both have is kept once, the rest is new."""
    make_database(tmp_path / "two.vscdb", "c1", "c2").replace(database)
    world.run("sessiond", "sync", check=0)
    assert_well(world, database, ["c1", "c2"])
    make_database(tmp_path / "three.vscdb", "c3", "c1").replace(database)
    world.run("sessiond", "sync", check=0)
    assert_well(world, database, ["c1", "c3"])
    assert listed(world) == {"c1": False, "c2": True, "c3": False}
    assert len(world.shown("c2")) == 5
    twice = "SELECT native_id FROM records WHERE retired = 0 AND native_id IS NOT NULL"
    assert world.sql(f"{twice} GROUP BY session_id, native_id HAVING count(*) > 1") == []


def test_the_daemon_follows_another_file_in_its_place(world, good, database, tmp_path):
    """A connection to the old file would never show anything new."""
    process = world.start()
    try:
        wait_until((world.state / "status.json").exists)
        wait_until(lambda: ready(world) and world.shown("c1"))
        make_database(tmp_path / "two.vscdb", "c1", "c2").replace(database)
        wait_until(lambda: world.shown("c2"))
        wait_until(lambda: listed(world) == {"c1": False, "c2": False})
        with child(WRITER, database, "bubbleId:c2:late", json.dumps(bubble("late", text="last"))):
            wait_until(lambda: world.found("last"))
    finally:
        process.terminate()
        process.wait(LIMIT)


def test_a_crash_of_cursor_leaves_a_log_that_is_read(world, good):
    """kill -9 of the writer: what only the WAL has is found, and both files keep their bytes."""
    database = make_database(global_database(world.root), "c1")
    late = json.dumps(bubble("late", text="only in the log"))
    with child(WRITER, database, "bubbleId:c1:late", late) as process:
        process.send_signal(signal.SIGKILL)
    log = database.with_name("state.vscdb-wal")
    before = database.read_bytes(), log.read_bytes()
    for _ in range(2):
        world.run("sessiond", "sync", check=0)
        assert world.found("log") == ["only in the log"]
        assert (database.read_bytes(), log.read_bytes()) == before


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_directory_that_cannot_be_written_is_enough(world, good, plain_user, journal):
    """A closed database needs no -wal or -shm file."""
    database = make_database(global_database(world.root), "c1", journal=journal)
    os.chmod(database.parent, 0o500)
    try:
        done = world.run("sessiond", "sync", check=0, preexec_fn=plain_user)
        assert done.stderr == ""
        assert_well(world, database)
        assert os.listdir(database.parent) == ["state.vscdb"]
    finally:
        os.chmod(database.parent, 0o700)


def test_an_open_database_in_a_directory_that_cannot_be_written(world, good, plain_user):
    """Cursor has created the files that a reader needs."""
    database = make_database(global_database(world.root), "c1")
    late = json.dumps(bubble("late", text="only in the log"))
    with child(WRITER, database, "bubbleId:c1:late", late):
        os.chmod(database.parent, 0o500)
        try:
            world.run("sessiond", "sync", check=0, preexec_fn=plain_user)
            assert world.found("log") == ["only in the log"]
        finally:
            os.chmod(database.parent, 0o700)


@pytest.mark.parametrize(
    "tables", [(), ("ItemTable",), ("cursorDiskKV",), ("ItemTable", "cursorDiskKV")]
)
def test_tables_that_are_empty_or_missing_are_no_fault(world, good, tables):
    """A new installation; its first conversation is read when it appears."""
    database = global_database(world.root)
    make_global(database, tables=tables).close()
    for _ in range(2):
        assert world.run("sessiond", "sync", check=0).stderr == ""
        source = status_of(world, database)
        assert source is None or source["error"] is None
    database.unlink()
    make_database(database, "c1")
    world.run("sessiond", "sync", check=0)
    assert_well(world, database)


def test_an_empty_file_is_no_fault(world, good):
    """Cursor creates the file before it writes to it."""
    database = global_database(world.root)
    database.parent.mkdir(parents=True)
    database.touch()
    assert world.run("sessiond", "sync", check=0).stderr == ""
    make_database(database, "c1")
    world.run("sessiond", "sync", check=0)
    assert_well(world, database)


STRANGE = {
    "null": None,
    "empty": "",
    "a number": 7,
    "a float": 1.5,
    "a list": "[1, 2]",
    "a string": '"text"',
    "true": "true",
    "no JSON": "{broken",
    "cut off": json.dumps(bubble("x", text="cut"))[:-40],
    "no text": b"\xff\xfe\x00\x01",
    "NUL": '{"type":2,"text":"a\\u0000b"}',
    "half a pair": '{"type":2,"text":"\\ud800"}',
    "deep": "[" * 5000 + "]" * 5000,
    "wrong types": '{"type":"two","text":[1],"toolFormerData":"x","thinking":7,"images":{}}',
    "odd call": '{"type":2,"toolFormerData":{"params":"{","result":7,"status":[],"name":{}}}',
    "bad times": '{"type":2,"text":"t","createdAt":"yesterday","timingInfo":{"clientEndTime":-1}}',
    "far times": '{"type":1,"text":"t","createdAt":99999999999999999999}',
}


@pytest.mark.parametrize("where", ["bubbleId:c1:", "composerData:"])
def test_a_strange_value_costs_only_itself(world, good, where):
    """Malformed rows do not affect the conversation among them."""
    database = make_database(global_database(world.root), "c1")
    db = make_global(database, tables=())
    for name, value in STRANGE.items():
        db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"{where}{name}", value))
    db.close()
    for _ in range(2):
        done = world.run("sessiond", "sync", check=0)
        assert done.stderr == ""
    told = [text for _, text, _ in world.shown("c1")]
    assert "c1 please fix the parser" in told
    assert "c1 it is fixed" in told
    if where == "composerData:":
        assert len(told) == 5
        assert listed(world) == {"c1": False}
    assert status_of(world, database)["state"] == "live"
    world.check()


def test_strange_keys_are_no_conversations(world, good):
    """Keys with too few or too many fields, blobs as keys, empty ids."""
    database = make_database(global_database(world.root), "c1")
    db = make_global(database, tables=())
    value = bubble("x", text="strange key")
    for key in ("bubbleId:", "bubbleId::", "bubbleId:c1:", "bubbleId:c1", "bubbleId::x",
                "composerData:", "composerData", "bubbleId:c9:x:y", b"bubbleId:c1:z"):  # fmt: skip
        put(db, key, value)
    db.close()
    for _ in range(2):
        assert world.run("sessiond", "sync", check=0).stderr == ""
    told = [text for _, text, _ in world.shown("c1")]
    assert "c1 please fix the parser" in told
    world.check()


@pytest.mark.parametrize("megabytes", [30, pytest.param(100, marks=pytest.mark.soak)])
def test_a_huge_value_needs_bounded_memory(world, good, measured, megabytes):
    """A pasted file in one bubble: the rest is found, and memory stays bounded."""
    database = make_database(global_database(world.root), "c1")
    db = make_global(database, tables=())
    line = "some line of a file that somebody pasted into the box\n"
    huge = bubble("huge", text=f"hugebegin {line * (megabytes * 1_000_000 // len(line))}")
    talk = [*small_talk("c2"), huge]
    put_conversation(db, composer("c2", talk), talk)
    db.close()
    done = measured("sessiond", "sync")
    assert (done.code, done.stderr) == (0, "")
    assert done.megabytes < 350
    assert_well(world, database)
    assert world.shown("c2")[0][1] == "c2 please fix the parser"
    again = measured("sessiond", "sync")
    assert again.megabytes_read < megabytes


def test_a_workspace_in_trouble_costs_only_itself(world, good, database):
    """Its project is not known, but every conversation of the global database is there."""
    broken = database.parent.parent / "workspaceStorage" / "abc" / "state.vscdb"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"nothing " * 1000)
    (broken.parent / "workspace.json").write_text("{not json")
    world.run("sessiond", "sync")
    assert_well(world, database)


def test_a_writer_is_never_held_up(world, good):
    """A rollback journal blocks writers while we read: our reads are short."""
    database = global_database(world.root)
    db = make_global(database, journal="delete")
    many = [bubble(f"b{n}", text=f"bubble {n} " * 200) for n in range(3000)]
    db.execute("BEGIN")
    put_conversation(db, composer("c1", many), many)
    db.execute("COMMIT")
    db.execute("PRAGMA busy_timeout = 1000")
    with subprocess.Popen([f"{BIN}/sessiond", "sync"], env=world.env) as process:
        writes = 0
        while process.poll() is None:
            put_bubble(db, "c1", bubble("b0", text=f"again {writes}"))
            put_composer(db, composer("c1", many))
            writes += 1
    db.close()
    assert process.returncode in (0, 5)
    world.run("sessiond", "sync", check=0)
    assert world.found(f'"again {writes - 1}"') == [f"again {writes - 1}"]


def test_the_size_of_the_log_is_not_our_doing(world, good):
    """A running daemon does not keep Cursor from checkpointing its WAL."""
    database = make_database(global_database(world.root), "c1")
    process = world.start()
    try:
        db = sqlite3.connect(database, timeout=0, isolation_level=None)
        for number in range(2000):
            put_bubble(db, "c1", bubble("c1-5", text=f"answer {number} " * 100))
            if number % 100 == 0:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        size = database.with_name("state.vscdb-wal").stat().st_size
        db.close()
    finally:
        process.terminate()
        process.wait(LIMIT)
    assert size < 20_000_000
