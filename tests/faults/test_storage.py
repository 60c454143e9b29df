"""The disk fails or is full at any moment: nothing is lost, nothing is doubled, work goes on."""

from __future__ import annotations

import os
import shutil
from contextlib import closing, suppress

import apsw
import pytest

from sess_schema.connection import open_writer
from sess_schema.errors import Exit, SessError
from sessiond.ingest import Ingest
from sessiond.store import Store

SPREAD = 60  # points of failure per kind; every one when SESSIOND_ALL_FAULTS is set


class Disk(apsw.VFS):
    """The ordinary file system, until write or sync `fail_at` fails."""

    def __init__(self, error=None, fail_at=0) -> None:
        self.base = apsw.vfs_names()[0]
        self.calls = 0
        self.error, self.fail_at = error, fail_at
        super().__init__("failing-disk", self.base, makedefault=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unregister()

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
        return DiskFile(self, name, flags)

    def touch(self, *, takes_space):
        self.calls += 1
        if self.error is apsw.FullError:  # a full disk stays full until someone tidies up
            fails = takes_space and self.calls >= self.fail_at
        else:
            fails = self.error is not None and self.calls == self.fail_at
        if fails:
            raise self.error("injected")

    def mend(self):
        self.error = None


class DiskFile(apsw.VFSFile):
    def __init__(self, disk, name, flags) -> None:
        self._disk = disk
        super().__init__(disk.base, name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        self._disk.touch(takes_space=True)
        super().xWrite(data, offset)

    def xSync(self, _flags):  # noqa: N802
        self._disk.touch(takes_space=False)  # and no more: power stays on, and syncing is slow

    def xTruncate(self, size):  # noqa: N802
        self._disk.touch(takes_space=False)
        super().xTruncate(size)


ORIGINAL, FORK = "aaaaaaaa-1111-4111-8111-111111111111", "bbbbbbbb-1111-4111-8111-111111111111"
MOVED, GONE = "cccccccc-1111-4111-8111-111111111111", "dddddddd-1111-4111-8111-111111111111"


def history(world):
    """Changes of the files, one after each `yield`; a pass belongs after each."""
    original, fork = world.transcript(ORIGINAL), world.transcript(FORK)
    moved, gone = world.transcript(MOVED), world.transcript(GONE)
    lines = [original.prompt("where is it"), original.call("c1", command="grep -r it")]
    original.append(*lines, b"broken line\n")
    fork.append(*({**line, "sessionId": FORK} for line in lines), b'{"half')
    moved.append(moved.prompt("move me"))
    gone.append(gone.prompt("delete me"))
    yield
    original.append(original.result("c1", "found it " * 50, is_error=True))
    fork.path.write_bytes(fork.encode(fork.prompt("rewritten")) * 2)
    gone.path.unlink()
    there = moved.path.parent.with_name("-elsewhere")
    there.mkdir()
    moved.path.rename(there / moved.path.name)
    yield
    original.append(original.answer("that is all"))
    yield


def close(db):
    """SQLite itself shrugs when the last checkpoint fails; the injected exception goes on."""
    if db is not None:
        with suppress(apsw.FullError, apsw.IOError):
            db.close()


def passes(world, disk, *, same_connection):
    """The whole history; a pass that fails is run again on a disk that works."""
    failures = []
    index = str(world.state / "index.db")
    ingest = db = None
    for _ in history(world):
        while True:
            try:
                if not same_connection or ingest is None:
                    db = open_writer(world.state / "index.db")
                    ingest = Ingest(Store(db))
                ingest.reconcile(world.places())
            except SessError as error:
                failures.append((error.code, error.message.count(index), error.hint is None))
                disk.mend()
            else:
                break
            finally:
                if not same_connection:
                    close(db)
    close(db)
    assert failures in ([], [(Exit.INDEX_UNUSABLE, 1, False)])
    return len(failures)


def facts(world):
    """What the index says, with paths that do not depend on where the test runs."""
    found = world.dump()
    for part in ("turns", "sources"):
        found[part] = sorted(
            (os.path.relpath(row[0], world.projects), *row[1:]) for row in found[part]
        )
    found["chunks"] = [
        (os.path.relpath(path, world.projects), world.restored(path))
        for (path,) in world.sql("SELECT path FROM sources ORDER BY path")
    ]
    found["titles"] = world.sql("SELECT native_id, title FROM sessions ORDER BY 1")
    return found


def points(total):
    if os.environ.get("SESSIOND_ALL_FAULTS") or total <= SPREAD:
        return range(1, total + 1)
    return sorted({1 + number * (total - 1) // (SPREAD - 1) for number in range(SPREAD)})


@pytest.mark.parametrize("same_connection", [False, True], ids=["reopened", "same connection"])
@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_a_write_or_sync_that_fails_changes_nothing(world, tmp_path, error, same_connection):
    """Call N fails, for N all over the work from the migration on: the same index in the end."""
    world.state.mkdir(mode=0o700)
    with Disk() as disk:
        passes(world, disk, same_connection=same_connection)
    total = disk.calls
    undisturbed = facts(world)
    assert total > SPREAD
    assert len(undisturbed["events"]) == 7
    disturbed = 0
    for call in points(total):
        other = type(world)(tmp_path / "faulty")
        other.state.mkdir(mode=0o700)
        with Disk(error, call) as disk:
            disturbed += passes(other, disk, same_connection=same_connection)
        assert facts(other) == undisturbed, f"call {call} of {total}"
        other.check()
        shutil.rmtree(other.root)
    assert disturbed > SPREAD // 2


def test_a_migration_that_fails_half_way_leaves_no_table(world):
    """Until the migration is whole there is nothing: version 0, no table; then it all is there."""
    index = world.state / "index.db"
    world.state.mkdir(mode=0o700)
    with Disk() as disk:
        open_writer(index).close()
    seen, said = set(), set()
    for call in range(1, disk.calls + 1):
        for path in world.state.iterdir():
            path.unlink()
        with Disk(apsw.FullError, call):
            try:
                close(open_writer(index))
            except SessError as error:
                said.add(error.message)
        with closing(apsw.Connection(str(index))) as db:
            tables = db.execute("SELECT count(*) FROM sqlite_schema").get
            seen.add((db.pragma("user_version"), tables > 0))
        open_writer(index).close()
        world.check()
    assert seen == {(0, False), (1, True)}
    assert said == {f'index "{index}": the disk is full'}
