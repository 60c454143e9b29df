"""The disk fails or fills up at any moment: nothing is lost or duplicated, work continues."""

from __future__ import annotations

import resource
import secrets
import shutil
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest
from tests.at_length import amount, spread
from tests.faults.disk import READS, WRITES, Trouble
from tests.faults.history import close, facts, history
from tests.must import must
from tests.schema.upgrading import later
from tests.waiting import LIMIT

from sess_common.errors import Exit, SessError
from sess_schema import page_sums
from sess_schema.connection import open_writer
from sess_schema.migrate import latest
from sessiond.ingest import Ingest
from sessiond.writing.transaction import Store

BIN = Path(sys.executable).parent


def passes(world, disk, *, same_connection):
    """The whole history; a sync that fails is repeated on a working disk."""
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


TROUBLES = [
    pytest.param(apsw.FullError, WRITES, id="full"),
    pytest.param(apsw.IOError, WRITES, id="failing"),
    pytest.param(apsw.IOError, READS, id="unreadable"),
]


@pytest.mark.parametrize("same_connection", [False, True], ids=["reopened", "same connection"])
@pytest.mark.parametrize(("error", "calls"), TROUBLES)
def test_a_call_that_fails_changes_nothing(world, tmp_path, error, calls, same_connection):
    """Call N fails, for N from the migration to the end: the final index is the same."""
    world.state.mkdir(mode=0o700)
    with Trouble(calls=calls) as disk:
        passes(world, disk, same_connection=same_connection)
    total = disk.calls
    undisturbed = facts(world)
    assert len(undisturbed["events"]) == 7
    disturbed = 0
    most = amount(12, 80)
    for call in spread(total, most):
        other = type(world)(tmp_path / "faulty")
        other.state.mkdir(mode=0o700)
        with Trouble(error, call, calls) as disk:
            disturbed += passes(other, disk, same_connection=same_connection)
        assert facts(other) == undisturbed, f"call {call} of {total}"
        other.check()
        shutil.rmtree(other.root)
    assert disturbed > 0


def test_a_migration_that_fails_half_way_leaves_no_table(world):
    """Until all migrations are done, none of them is visible."""
    index = world.state / "index.db"
    world.state.mkdir(mode=0o700)
    with Trouble() as disk:
        open_writer(index).close()
    seen, said = set(), set()
    for call in spread(disk.calls, amount(15, 1000)):
        for path in world.state.iterdir():
            path.unlink()
        with Trouble(apsw.FullError, call):
            try:
                close(open_writer(index))
            except SessError as error:
                said.add(error.message)
        with closing(page_sums.opened(str(index))) as db:
            tables = db.execute("SELECT count(*) FROM sqlite_schema").get
            seen.add((db.pragma("user_version"), tables > 0))
        open_writer(index).close()
        world.check()
    assert seen == {(0, False), (latest(), True)}
    assert said == {f'index "{index}": the disk is full'}


def test_an_upgrade_that_fails_half_way_loses_nothing(world):
    """Whichever write fails, the index is the old one or the new one, with every event in it."""
    for _ in history(world):
        world.ingest()
    index = world.state / "index.db"
    before, old = index.read_bytes(), latest()
    with closing(page_sums.opened(str(index))) as db:
        texts = list(db.execute("SELECT * FROM event_texts"))
    seen = set()
    with later():
        with Trouble() as disk:
            open_writer(index).close()
        for call in spread(disk.calls, amount(10, 60)):
            for path in index.parent.iterdir():
                path.unlink()
            index.write_bytes(before)
            with Trouble(apsw.FullError, call), suppress(SessError):
                close(open_writer(index))
            with closing(page_sums.opened(str(index))) as db:
                seen.add(db.pragma("user_version"))
                assert list(db.execute("SELECT * FROM event_texts")) == texts
            with Trouble(), closing(open_writer(index)) as db:
                assert list(db.execute("SELECT * FROM event_texts")) == texts
                assert db.pragma("integrity_check") == "ok"
        assert seen == {old, latest()}


class SmallDisk:
    """A tmpfs on a directory, in a private mount namespace that needs no root."""

    def __init__(self, directory, megabytes) -> None:
        directory.mkdir(mode=0o700)
        self.directory = directory
        mount = f"size={megabytes}m,mode=700"
        script = 'mount -t tmpfs -o "$1" none "$2" && echo ready && exec cat'
        self._keeper = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", mount,
             directory],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        if must(self._keeper.stdout).readline() != b"ready\n":
            reason = must(self._keeper.stderr).read().decode().strip()
            self.close()
            pytest.skip(f"NOT TESTED: this system does not let us mount a small disk: {reason}")

    def close(self):
        self._keeper.communicate()

    @property
    def outside(self):
        """The directory as the test sees it, from outside the namespace."""
        return Path(f"/proc/{self._keeper.pid}/root{self.directory}")

    def inside(self, *command):
        """The command line that runs a program where the small disk is mounted."""
        enter = ["nsenter", f"--target={self._keeper.pid}", "--user", "--mount"]
        return [*enter, "--preserve-credentials", "--", *map(str, command)]

    def run(self, world, program, *arguments):
        command = self.inside(BIN / program, *arguments)
        return subprocess.run(
            command, env=world.env, capture_output=True, text=True, timeout=60, check=False
        )

    def grow(self, megabytes):
        # Without the options it has: a user who is mapped to root may not give them again.
        alone = "--options-source=disable"
        command = self.inside("mount", alone, "-o", f"remount,size={megabytes}m", self.directory)
        subprocess.run(command, check=True)

    def fill(self):
        """Fill the disk."""
        with (self.outside / "filler").open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def tidy(self):
        (self.outside / "filler").unlink()


@pytest.fixture
def small_disk(world):
    disk = SmallDisk(world.state, 4)
    yield disk
    disk.close()


def noise(kilobytes):
    """Words that do not compress well."""
    return secrets.token_hex(kilobytes * 512)


def is_full(world):
    return (
        f'sessiond: index "{world.state}/index.db": the disk is full\n'
        "hint: free some space; nothing is lost, the next sync continues where this one stopped\n"
    )


def test_a_sync_on_a_full_disk_says_so_and_the_next_one_goes_on(world, small_disk, tmp_path):
    """Exit 4 and one clear line; searching still works; with more space the load completes."""
    t = world.transcript()
    t.append(t.prompt("the very first words"))
    assert small_disk.run(world, "sessiond", "sync").returncode == 0
    for number in range(12):
        t = world.transcript(f"{number:08d}-2222-4111-8111-111111111111")
        t.append(*(t.prompt(f"number {n} {noise(50)}") for n in range(10)))
    for _ in range(2):
        full = small_disk.run(world, "sessiond", "sync")
        assert (full.returncode, full.stderr, full.stdout) == (4, is_full(world), "")
        found = small_disk.run(world, "sess", "search", "--no-sync", "--json", "very first words")
        assert found.returncode == 0, found.stderr
        assert len(found.stdout.splitlines()) == 1
    small_disk.grow(100)
    done = small_disk.run(world, "sessiond", "sync")
    assert (done.returncode, done.stderr) == (0, "")
    world.state = tmp_path / "taken out"
    shutil.copytree(small_disk.outside, world.state)
    world.check()
    disturbed = world.dump()
    world.state = tmp_path / "undisturbed"
    world.ingest()
    assert disturbed == world.dump()
    assert len(disturbed["events"]) == 121


def test_a_disk_without_a_single_byte_left_is_named(world, small_disk):
    """Not even the lock file can be written: still the same line and exit 4, no traceback."""
    t = world.transcript()
    t.append(t.prompt("words"))
    small_disk.fill()
    for program, arguments in (("sessiond", ["sync"]), ("sess", ["search", "words"])):
        full = small_disk.run(world, program, *arguments)
        assert (full.returncode, full.stderr) == (4, is_full(world))
    small_disk.tidy()
    assert small_disk.run(world, "sessiond", "sync").returncode == 0


def test_the_index_can_be_read_while_the_disk_is_full(world, small_disk):
    """A search after a clean stop works although no byte can be written next to the index."""
    t = world.transcript()
    t.append(t.prompt("words to find"))
    assert small_disk.run(world, "sessiond", "sync").returncode == 0
    small_disk.fill()
    found = small_disk.run(world, "sess", "search", "--no-sync", "--json", "words")
    assert (found.returncode, found.stderr) == (0, "")
    assert len(found.stdout.splitlines()) == 1


def test_the_daemon_waits_for_space_and_goes_on_by_itself(world, small_disk, until):
    """While the disk is full it keeps running and reports it in its status; then it catches up."""
    t = world.transcript()
    t.append(t.prompt("before the disk was full"))
    daemon = subprocess.Popen(
        small_disk.inside(BIN / "sessiond", "start"),
        env=world.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def found(words):
        done = small_disk.run(world, "sess", "search", "--no-sync", "--json", words)
        return done.stdout.splitlines()

    def status():
        return small_disk.run(world, "sessiond", "status").stdout

    try:
        until(lambda: found("before"))
        small_disk.fill()
        t.append(*(t.prompt(f"meanwhile {noise(20)}") for _ in range(10)))
        paused = f'paused: index "{world.state}/index.db": the disk is full'
        until(lambda: paused in status(), what="status does not say so")
        assert daemon.poll() is None
        assert len(found("before")) == 1
        small_disk.tidy()
        until(lambda: len(found("meanwhile")) == 10, what="it did not resume")
        until(lambda: "paused" not in status())
    finally:
        daemon.terminate()
        assert daemon.wait(LIMIT) == 0


def test_a_daemon_that_starts_on_a_full_disk_waits_for_space(world, small_disk, until):
    """It does not give up, nor let a service manager give up on it; SIGTERM still ends it."""
    t = world.transcript()
    t.append(t.prompt("words"))
    small_disk.fill()
    find = ("sess", "search", "--no-sync", "words")
    for tidy in (False, True):
        daemon = subprocess.Popen(
            small_disk.inside(BIN / "sessiond", "start"),
            env=world.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            told = next(line for line in must(daemon.stderr) if " ERROR " in line)
            assert f'index "{world.state}/index.db": the disk is full; retrying in 2 s' in told
            assert daemon.poll() is None
            if tidy:
                small_disk.tidy()
                until(lambda: small_disk.run(world, *find).returncode == 0)
        finally:
            daemon.terminate()
            assert daemon.wait(LIMIT) == 0
            must(daemon.stderr).close()


def test_a_limit_on_file_size_loses_nothing(world):
    """RLIMIT_FSIZE is an I/O error to SQLite: exit 4, one line; without it the sync completes."""
    t = world.transcript()
    t.append(*(t.prompt(f"number {n} {noise(100)}") for n in range(20)))

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = world.run("sessiond", "sync", check=4, preexec_fn=limit)
    message, hint = done.stderr.splitlines()
    assert message.startswith(f'sessiond: cannot use index "{world.state}/index.db": ')
    assert hint.startswith("hint: ")
    world.run("sessiond", "sync", check=0)
    assert world.sql("SELECT count(*) FROM events") == [(20,)]
    world.check()
