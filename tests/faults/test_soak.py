"""Everything at once for a while: daemons, kills, syncs, searches, backups, growing files."""

from __future__ import annotations

import os
import random
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.at_length import amount, count, peak, seeds
from tests.faults.conftest import told_by_kernel
from tests.faults.test_kill import assert_as_undisturbed
from tests.waiting import wait_until

from sess_common.errors import Exit

WAL_LIMIT = 64 << 20
FAIR = (Exit.OK, 75)  # 75: the daemon runs, and reads the files itself


class Mix:
    """A world in which anything may happen next."""

    def __init__(self, world, seed):
        self.world, self.chance = world, random.Random(seed)
        self.transcripts = [
            world.transcript(f"{letter * 8}-1111-4111-8111-111111111111") for letter in "abcd"
        ]
        self.started, self.copies = [], 0
        self.rest = b""

    def write(self):
        """A conversation in one of the files; its last line may wait for the next write."""
        t = self.chance.choice(self.transcripts)
        call = f"toolu_{t.session[:4]}_{t.count}"
        t.append(
            t.prompt(f"question {t.count}"),
            t.call(call, command=f"make {t.count}"),
            t.result(call, "output " * self.chance.randint(1, 900)),
        )
        line = t.encode(t.answer(f"answer {t.count}"))
        at = self.chance.randrange(1, len(line))
        t.append(line[:at])
        t.append(line[at:])

    def search(self):
        found = self.world.run("sess", "search", "--json", "--no-sync", "question")
        assert (found.returncode, found.stderr) in ((0, ""), (1, "")), found

    def list(self):
        listed = self.world.run("sess", "list", "--no-sync")
        assert listed.returncode == 0, listed

    def sync(self):
        done = self.world.run("sessiond", "sync")
        assert done.returncode in FAIR, done

    def two_syncs(self):
        """At once; one waits for the other."""
        with ThreadPoolExecutor(2) as both:
            done = [both.submit(self.world.run, "sessiond", "sync") for _ in range(2)]
        assert all(one.result().returncode in FAIR for one in done)

    def back_up(self):
        self.copies += 1
        target = self.world.root / f"copy{self.copies}.db"
        self.world.run("sess", "backup", "--no-sync", target, check=0)
        with closing(apsw.Connection(str(target))) as db:
            assert db.pragma("integrity_check") == "ok"
        target.unlink()

    def start(self):
        """Another daemon; if one runs, this one gives way."""
        self.started.append(self.world.start())

    def kill(self):
        for daemon in self.started:
            daemon.kill()
            count("kills", daemon.wait() == -signal.SIGKILL)
        self.started.clear()

    def stop(self):
        for daemon in self.started:
            daemon.terminate()
            assert daemon.wait(60) in (0, 75, -signal.SIGTERM)
        self.started.clear()


ACTIONS = (
    *("write",) * 6, *("search",) * 2, "list", "sync", "two_syncs", "back_up",
    *("start",) * 3, "kill", "stop",
)  # fmt: skip


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_everything_at_once_ends_as_one_quiet_sync(world, tmp_path, seed):
    """Several daemons, kills, syncs side by side, readers and backups: nothing lost or doubled."""
    mix = Mix(world, seed)
    for _ in range(3):
        mix.write()
    mix.sync()
    try:
        for _ in range(amount(25, 150)):
            getattr(mix, mix.chance.choice(ACTIONS))()
    finally:
        mix.stop()
    for _ in range(3):
        mix.write()
    assert_as_undisturbed(world, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: only Linux tells what it uses")
def test_a_daemon_that_works_for_long_needs_no_more(world):
    """Memory, descriptors, threads and WAL after many rounds are those after a few."""
    mix = Mix(world, 1)
    mix.write()
    daemon = world.start()
    wait_until((world.state / "status.json").exists)
    rounds, seen = amount(30, 600), []
    try:
        for number in range(rounds):
            mix.write()
            if number % 10 == 9:
                lines = sum(t.path.read_bytes().count(b"\n") for t in mix.transcripts if t.count)
                read = "SELECT coalesce(sum(lines), 0) FROM sources"
                wait_until(lambda lines=lines, read=read: world.sql(read) == [(lines,)])
                mix.search()  # not before: an index without sessions says so
                seen.append(used(daemon.pid, world))
    finally:
        daemon.terminate()
        assert daemon.wait(60) == 0
    early, late = seen[len(seen) // 3], seen[-1]
    peak(int(late[0] * 1024), "sessiond start")
    assert late[0] < early[0] + 30, seen  # megabytes
    assert late[1] <= early[1] + 2, seen
    assert late[2] <= early[2] + 1, seen
    assert max(wal for *_, wal in seen) < WAL_LIMIT


def used(pid, world):
    """Megabytes, descriptors and threads of a process, and the size of the WAL."""
    wal = world.state / "index.db-wal"
    return (
        told_by_kernel(pid, "status", "VmRSS:") / 1024,
        len(os.listdir(f"/proc/{pid}/fd")),
        len(os.listdir(f"/proc/{pid}/task")),
        wal.stat().st_size if Path(wal).exists() else 0,
    )
