"""The daemon as a real process: fresh, single, quick to stop, and honest about itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat

import pytest
from tests.must import must
from tests.waiting import LIMIT, wait_until

from sess_common import lock

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon(world):
    """A running daemon; stopped at the end however the test went."""
    process = world.start()
    wait_until((world.state / "status.json").exists)
    yield process
    if process.poll() is None:
        process.terminate()
        process.wait(LIMIT)


def test_an_appended_line_is_found_a_moment_later(world, daemon):
    """With the daemon up, a new file, a new folder and an append are all seen without a sync."""
    t = world.transcript()
    t.append(t.prompt("alpha"))
    wait_until(lambda: world.found("alpha"))
    t.append(t.prompt("beta"))
    wait_until(lambda: world.found("beta"))
    other = world.transcript("22222222-1111-4111-8111-111111111111", folder="-brand-new")
    other.append(other.prompt("gamma"))
    wait_until(lambda: world.found("gamma"))


def test_roots_may_appear_vanish_and_come_back(world):
    """A daemon started without any root adopts it; rm -rf and a new root lose nothing."""
    world.projects.rmdir()
    process = world.start()
    try:
        wait_until((world.state / "status.json").exists)
        for word in ("first", "second"):
            world.projects.mkdir(parents=True)
            t = world.transcript(f"{len(word)}1111111-1111-4111-8111-111111111111")
            t.append(t.prompt(word))
            wait_until(lambda word=word: world.found(word))
            t.path.unlink()
            t.path.parent.rmdir()
            world.projects.rmdir()
        wait_until(lambda: world.sql("SELECT count(*) FROM sources WHERE state = 'gone'") == [(2,)])
        assert world.found("first") == ["first"]
    finally:
        process.terminate()
        process.wait(LIMIT)


def test_a_root_may_become_a_link(world, daemon, tmp_path):
    """A directory moved away and replaced by a link to it is followed."""
    t = world.transcript()
    t.append(t.prompt("before"))
    wait_until(lambda: world.found("before"))
    moved = tmp_path / "other-disk"
    world.projects.rename(moved)
    world.projects.symlink_to(moved)
    t.append(t.prompt("after"))
    wait_until(lambda: world.found("after"))
    assert world.found("before") == ["before"]


def test_an_unfinished_line_is_settled_after_a_while(world, daemon):
    """A half line that stays is archived and reported, without any further event."""
    t = world.transcript()
    t.append(t.prompt("whole"), b'{"type":"us')
    wait_until(lambda: world.found("whole"))
    wait_until(lambda: world.sql("SELECT reason FROM warnings") == [("unfinished last line",)])
    assert world.restored(t.path) == t.path.read_bytes()


def test_only_one_daemon_runs(world, daemon):
    """A second start and a sync exit 75 and name the first."""
    for verb in ("start", "sync"):
        second = world.run("sessiond", verb, check=75)
        assert second.stderr.splitlines()[0] == (
            f"sessiond: a daemon is already running (pid {daemon.pid})"
        )
    daemon.kill()
    daemon.wait()
    world.run("sessiond", "sync", check=0)


def test_sigterm_during_a_load_ends_it_cleanly(world, daemon):
    """Exit 0, nothing half written, and the next pass goes on from there."""
    for number in range(40):
        t = world.transcript(f"{number:08d}-1111-4111-8111-111111111111")
        t.append(*(t.prompt(f"text {n} " * 200) for n in range(50)))
    wait_until(lambda: world.found("text"))
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(LIMIT) == 0
    world.check()
    world.run("sessiond", "sync", check=0)
    assert world.sql("SELECT count(*) FROM events") == [(2000,)]


def test_sighup_reads_the_configuration_again(world, daemon, tmp_path):
    """A root added to config.toml is indexed after SIGHUP; a bad file changes nothing."""
    extra = tmp_path / "extra"
    extra.mkdir()
    t = type(world.transcript())(extra / "p" / "33333333-1111-4111-8111-111111111111.jsonl", "3")
    t.append(t.prompt("delta"))
    config = world.state / "config.toml"
    config.write_text("[roots\n")
    daemon.send_signal(signal.SIGHUP)
    log = world.state / "sessiond.log"
    wait_until(lambda: "config.toml" in log.read_text())
    assert daemon.poll() is None
    config.write_text(f'[roots]\nclaude = ["{extra}"]\n')
    daemon.send_signal(signal.SIGHUP)
    wait_until(lambda: world.found("delta"))


def test_it_tells_the_service_manager(world, tmp_path):
    """READY=1 at the start, WATCHDOG=1 from the loop, STOPPING=1 at the end."""
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(LIMIT)
        world.env |= {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "2000000"}
        process = world.start()
        said: list[str] = []

        def hear(word):
            while not any(word in message for message in said):
                said.append(listener.recv(4096).decode())

        hear("READY=1")
        hear("WATCHDOG=1")
        process.terminate()
        hear("STOPPING=1")
        assert process.wait(LIMIT) == 0


def test_status_tells_per_source(world, daemon):
    """JSON status: the daemon, the index, and each source with lag and reasons."""
    t = world.transcript()
    t.append(t.prompt("one"), b"broken\n")
    wait_until(lambda: world.found("one"))
    lines = [
        json.loads(line)
        for line in world.run("sessiond", "status", "--json", check=0).stdout.splitlines()
    ]
    assert [line["kind"] for line in lines] == ["daemon", "index", "source"]
    assert lines[0]["running"] is True
    assert lines[0]["pid"] == daemon.pid
    source = lines[2]
    assert (source["state"], source["lag_bytes"], source["records"]) == ("live", 0, 2)
    assert list(source["warnings"].values()) == [1]
    daemon.terminate()
    daemon.wait(LIMIT)
    assert world.run("sessiond", "status").returncode == 3


def test_a_sync_without_an_index_yet_is_no_daemon(world):
    """Whatever holds the lock: exit code 0 says that a daemon runs."""
    world.state.mkdir(mode=0o700)
    held = must(lock.acquire(world.state / "sessiond.lock"))
    held.describe(mode="sync")
    done = world.run("sessiond", "status")
    held.release()
    assert done.returncode == 3
    assert done.stdout.startswith("daemon   not running ")


def test_detached_start_stop_and_restart(world):
    """start --detach returns when it serves; restart gives a new pid; stop twice is exit 3."""
    world.run("sessiond", "start", "--detach", check=0)
    first = json.loads((world.state / "status.json").read_text())["pid"]
    world.run("sessiond", "restart", check=0)
    second = json.loads((world.state / "status.json").read_text())["pid"]
    assert first != second
    world.run("sessiond", "stop", check=0)
    done = world.run("sessiond", "stop", check=3)
    assert done.stderr == "sessiond: no daemon is running\nhint: run `sessiond start --detach`\n"


def test_everything_is_private_whatever_the_umask(world):
    """Directory 0700, every file 0600, with a umask of 0."""
    t = world.transcript()
    t.append(t.prompt("secret"))
    world.run("sessiond", "sync", check=0, umask=0)
    process = world.start()
    try:
        wait_until((world.state / "status.json").exists)
        assert stat.S_IMODE(os.stat(world.state).st_mode) == 0o700
        modes = {p.name: oct(stat.S_IMODE(p.stat().st_mode)) for p in world.state.iterdir()}
        assert set(modes.values()) == {"0o600"}, modes
        assert "index.db-wal" in modes
    finally:
        process.terminate()
        process.wait(LIMIT)
