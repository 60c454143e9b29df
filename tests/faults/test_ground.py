"""Lock, index and WAL taken away under a writer: it stops with one line and nothing is doubled."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import closing, contextmanager

import apsw
import pytest
from tests.must import must
from tests.waiting import wait_until

from sess_common import lock
from sess_schema.connection import open_writer
from sess_schema.ground import GroundLost, Overtaken, standing_on
from sessiond.ingest import Ingest
from sessiond.writing.transaction import Store


@pytest.fixture
def t(world):
    one = world.transcript()
    one.append(*(one.prompt(f"line {number}") for number in range(5)))
    return one


@contextmanager
def writing(world):
    """An ingest that holds the lock."""
    world.state.mkdir(mode=0o700, exist_ok=True)
    held = must(lock.acquire(world.state / "sessiond.lock"))
    index = world.state / "index.db"
    try:
        with closing(open_writer(index)) as db, standing_on(db, index, held):
            yield Ingest(Store(db))
    finally:
        held.release()


def write_after(world, change, *, again=True):
    """Read everything, let something happen, and read once more."""
    with writing(world) as ingest:
        ingest.reconcile(world.places())
        change()
        if again:
            ingest.reconcile(world.places())


def lines(world):
    return world.sql("SELECT count(*) FROM records")[0][0]


def remove_lock(state):
    (state / "sessiond.lock").unlink()


def replace_lock(state):
    (state / "new").touch()
    os.replace(state / "new", state / "sessiond.lock")


@pytest.mark.parametrize("change", [remove_lock, replace_lock], ids=lambda f: f.__name__)
def test_without_its_lock_a_writer_writes_nothing_more(world, t, change):
    """Another writer may hold the new lock: the first one stops before its next commit."""

    def happens():
        change(world.state)
        t.append(t.prompt("after"))

    with pytest.raises(GroundLost, match=r"lock .* was removed"):
        write_after(world, happens)
    assert lines(world) == 5
    with writing(world) as ingest:
        ingest.reconcile(world.places())
    assert world.restored(t.path) == t.path.read_bytes()
    assert lines(world) == 6
    world.check()


def test_a_lock_that_is_removed_while_it_is_taken_is_not_held(world, monkeypatch):
    """Opened, removed by others, then locked: nobody else would see this lock."""
    world.state.mkdir(mode=0o700)
    path = world.state / "sessiond.lock"
    original = lock._try_lock
    tries: list[int] = []

    def removed_meanwhile(fd, **options):
        if not tries:
            path.unlink()
        tries.append(fd)
        return original(fd, **options)

    monkeypatch.setattr(lock, "_try_lock", removed_meanwhile)
    held = must(lock.acquire(path))
    assert len(tries) == 2
    assert held.is_at_its_path()
    held.release()


def remove_index(state):
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        (state / name).unlink()


def replace_index(state):
    shutil.copy(state / "index.db", state / "other.db")
    os.replace(state / "other.db", state / "index.db")


@pytest.mark.parametrize("change", [remove_index, replace_index], ids=lambda f: f.__name__)
@pytest.mark.parametrize("again", [True, False], ids=["at a write", "at the end"])
def test_an_index_that_is_taken_away_is_saved(world, t, change, again):
    """Sources may be gone by now: what was in the index is in a file that can be loaded again."""
    content = t.path.read_bytes()

    def happens():
        t.path.unlink()
        change(world.state)
        other = world.transcript("22222222-1111-4111-8111-111111111111")
        other.append(other.prompt("after"))

    with pytest.raises(GroundLost) as lost:
        write_after(world, happens, again=again)
    (saved,) = world.state.glob("saved-*.db")
    assert lost.value.message.endswith(f'; its content was saved as "{saved}"')
    assert saved.stat().st_mode & 0o777 == 0o600
    with closing(apsw.Connection(str(saved))) as db:
        assert db.pragma("integrity_check") == "ok"
        assert db.execute("SELECT count(*) FROM records").get == 5
    (world.state / "index.db").unlink(missing_ok=True)
    world.run("sessiond", "salvage", saved, check=0)
    assert world.restored(t.path) == content


def test_closing_leaves_the_wal_of_a_new_index_alone(world, t):
    """SQLite deletes the WAL by name when it closes; it must not be the new index's."""
    opened = []

    def happens():
        remove_index(world.state)
        opened.append(open_writer(world.state / "index.db"))
        opened[0].execute("INSERT INTO facts (name, value) VALUES ('new', 'index')")

    with pytest.raises(GroundLost):
        write_after(world, happens, again=False)
    (other,) = opened
    assert other.execute("SELECT value FROM facts WHERE name = 'new'").get == "index"
    assert world.sql("SELECT value FROM facts WHERE name = 'new'") == [("index",)]
    other.close()


def test_a_wal_that_is_taken_away_loses_nothing(world, t):
    """What stood in it is written into the index before the writer stops."""

    def happens():
        (world.state / "index.db-wal").unlink()
        t.append(t.prompt("after"))

    with pytest.raises(GroundLost, match="-wal"):
        write_after(world, happens)
    assert lines(world) == 5
    world.ingest()
    assert lines(world) == 6
    assert world.restored(t.path) == t.path.read_bytes()
    world.check()


def test_two_writers_cannot_read_the_same_bytes_twice(world, t):
    """Without any lock: the second one notices that the offset moved, and starts over."""
    world.ingest()
    index = world.state / "index.db"
    with closing(open_writer(index)) as one, closing(open_writer(index)) as two:
        first, second = Ingest(Store(one)), Ingest(Store(two))
        assert len(first.tracked) == len(second.tracked) == 1
        t.append(t.prompt("after"))
        first.reconcile(world.places())
        t.append(t.prompt("and after"))
        with pytest.raises(Overtaken, match="another process has written"):
            second.reconcile(world.places())
        second.reconcile(world.places())
        first.forget_state()
        first.reconcile(world.places())
    assert lines(world) == 7
    assert world.restored(t.path) == t.path.read_bytes()
    world.check()


def test_no_part_of_a_file_can_be_archived_twice(world, t):
    """The table itself refuses a second chunk at the same place."""
    world.ingest()
    with closing(open_writer(world.state / "index.db")) as db, pytest.raises(apsw.ConstraintError):
        db.execute(
            "INSERT INTO chunks (source_id, retired, offset, length, data)"
            " SELECT source_id, retired, offset, length, data FROM chunks"
        )


def test_a_daemon_whose_lock_is_removed_gives_way(world, t):
    """It stops by itself with a line in its log; the second daemon has every line once."""
    first = world.start()
    wait_until(lambda: (world.state / "status.json").exists() and lines(world) == 5)
    remove_lock(world.state)
    second = world.start()
    t.append(t.prompt("after"))
    assert first.wait(60) == 4
    wait_until(lambda: lines(world) == 6)
    second.send_signal(signal.SIGTERM)
    assert second.wait(60) == 0
    assert (
        "was removed: another daemon may be writing" in (world.state / "sessiond.log").read_text()
    )
    assert world.restored(t.path) == t.path.read_bytes()
    assert lines(world) == 6
