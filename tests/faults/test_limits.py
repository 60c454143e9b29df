"""Too few watches, queue entries, descriptors or CPU time: the daemon loses no line."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.must import must
from tests.waiting import LIMIT

from sess_common import lock

BIN = Path(sys.executable).parent
WATCHES = "sudo sysctl fs.inotify.max_user_watches=524288"
INSTANCES = "sudo sysctl fs.inotify.max_user_instances=1024"


@pytest.fixture
def start(world, until):
    """Start daemons that end with the test."""
    running = []

    def run(*before, **options):
        if before:
            process = subprocess.Popen(
                [*before, BIN / "sessiond", "start"],
                env=world.env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        else:
            process = world.start(**options)
        running.append(process)
        until((world.state / "status.json").exists, what="it did not start")
        return process

    yield run
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            assert process.wait(LIMIT) == 0


def facts(world):
    return json.loads((world.state / "status.json").read_text())


def with_only(count, what):
    """A command prefix: a user namespace with a limit on inotify watches or instances."""
    script = f'echo {count} > /proc/sys/user/max_inotify_{what} && exec "$@"'
    prefix = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("NOT TESTED: this system has no user namespaces with their own inotify limit")
    return prefix


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd")), len(os.listdir(f"/proc/{process.pid}/task"))


@pytest.mark.parametrize("few", [(8, "watches"), (0, "watches"), (0, "instances")])
def test_out_of_watches_it_polls_and_names_the_sysctl(world, start, until, few):
    """With too few watches, or none: lines anywhere are found soon; log and status say why."""
    sysctl = INSTANCES if few[1] == "instances" else WATCHES
    for number in range(20):
        t = world.transcript(f"{number:08d}-1111-4111-8111-111111111111", folder=f"-p{number}")
        t.append(t.prompt(f"early{number}"))
    process = start(*with_only(*few))
    until(lambda: facts(world).get("blind"))
    assert facts(world)["fix"] == sysctl
    before = descriptors(process)
    for number in range(20):
        t = world.transcript(f"{number:08d}-2222-4111-8111-111111111111", folder=f"-p{number}")
        t.append(t.prompt(f"late{number}"))
    new = world.transcript("33333333-2222-4111-8111-111111111111", folder="-new")
    new.append(new.prompt("late20"))
    until(lambda: world.sql("SELECT count(*) FROM events") == [(41,)])
    until(lambda: facts(world)["directories"] == 22)
    assert descriptors(process) == before, "something is left behind by each try"
    status = world.run("sessiond", "status", check=0).stdout
    assert f"some directories are polled; to watch them all, run: {sysctl}" in status
    log = (world.state / "sessiond.log").read_text()
    assert log.count(sysctl) == 1, "once is enough"


def test_a_directory_that_may_not_be_read_is_no_lack_of_watches(world, start, until, plain_user):
    """It is skipped and named; the daemon neither polls nor blames a sysctl."""
    t = world.transcript()
    t.append(t.prompt("words"))
    locked = world.projects / "-locked"
    locked.mkdir(mode=0)
    start(preexec_fn=plain_user)
    until(lambda: facts(world).get("seen") == 1)
    assert facts(world)["blind"] is False
    assert facts(world)["skipped"] == [{"path": str(locked), "reason": "permission denied"}]


def test_an_overflow_of_the_event_queue_loses_nothing(world, start, until):
    """Stopped while the kernel's queue overflows: afterwards all 3,000 files are indexed."""
    known = Path("/proc/sys/fs/inotify/max_queued_events")
    if not known.exists():
        pytest.skip("NOT TESTED: the queue of events can only be overrun on purpose on Linux")
    process = start()
    t = world.transcript("first111-1111-4111-8111-111111111111")
    t.append(t.prompt("first"))
    until(lambda: world.found("first"))
    process.send_signal(signal.SIGSTOP)
    transcripts = [
        world.transcript(f"{number:08d}-1111-4111-8111-111111111111") for number in range(3000)
    ]
    events = 0
    while events <= int(known.read_text()):
        for t in transcripts:
            t.append(t.prompt("later"))
        events += len(transcripts)
    lines = t.count
    process.send_signal(signal.SIGCONT)
    until(
        lambda: world.sql("SELECT count(*), sum(lines) FROM sources") == [(3001, 3000 * lines + 1)]
    )
    until(lambda: facts(world)["overflows"] > 0)
    assert world.sql("SELECT count(*) FROM events") == [(3000 * lines + 1,)]
    t.append(t.prompt("afterwards"))
    until(lambda: world.found("afterwards"), what="the watches did not come back")


def test_few_descriptors_are_enough(world, start, until):
    """RLIMIT_NOFILE=64 with 300 files in 100 folders: all indexed, none left open."""

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    for number in range(300):
        t = world.transcript(f"{number:08d}-1111-4111-8111-111111111111", folder=f"-{number % 100}")
        t.append(t.prompt("many"))
    process = start(preexec_fn=limit)
    until(lambda: world.sql("SELECT count(*) FROM events") == [(300,)])
    until(lambda: facts(world).get("directories") == 101)
    assert facts(world)["blind"] is False
    assert facts(world)["skipped"] == []
    t.append(t.prompt("one more"))
    until(lambda: world.found("one"))
    assert descriptors(process)[0] < 40


def test_a_daemon_that_was_frozen_catches_up(world, start, until):
    """SIGSTOP while lines arrive in pieces: after SIGCONT each is there once."""
    t = world.transcript()
    t.append(t.prompt("before"))
    process = start()
    until(lambda: world.found("before"))
    process.send_signal(signal.SIGSTOP)
    count = 200
    for number in range(count):
        line = t.encode(t.prompt(f"frozen {number}"))
        for piece in (line[:50], line[50:]):
            t.append(piece)
    assert world.found("frozen") == []
    process.send_signal(signal.SIGCONT)
    until(lambda: len(world.found("frozen")) == count)
    assert world.sql("SELECT count(*), count(DISTINCT native_id) FROM records") == [
        (count + 1, count + 1)
    ]


def test_of_twenty_daemons_one_lives(world, until):
    """All started at once: nineteen exit 75; kill -9 the other one, and the next start works."""
    world.state.mkdir(mode=0o700)
    daemons = [world.start() for _ in range(20)]
    try:
        until(lambda: sum(daemon.poll() is not None for daemon in daemons) == 19)
        codes = sorted(daemon.returncode for daemon in daemons if daemon.poll() is not None)
        assert codes == [75] * 19
        [alive] = [daemon for daemon in daemons if daemon.poll() is None]
        until(lambda: (world.state / "status.json").exists() and facts(world)["pid"] == alive.pid)
        alive.kill()
        alive.wait()
        t = world.transcript()
        t.append(t.prompt("words"))
        daemons.append(world.start())
        until(lambda: world.found("words"))
        assert daemons[-1].poll() is None
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait(LIMIT)


def test_asking_whether_a_daemon_lives_does_not_stop_one_from_starting(tmp_path):
    """`status` and `sess` test the lock continuously; no start fails because of it."""
    path = tmp_path / "lock"
    path.write_text('{"pid": 1, "mode": "daemon"}')  # left by a daemon that was killed
    script = (
        "import sys; from pathlib import Path; from sess_common import lock\n"
        "print('asking', flush=True)\n"
        "while True: lock.holder(Path(sys.argv[1]))"
    )
    asking = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE)
    try:
        assert must(asking.stdout).readline() == b"asking\n"
        assert {lock.holder(path) is None for _ in range(2000)} == {True}
        for number in range(500):
            held = lock.acquire(path)
            assert held is not None
            if number == 0:  # it waits for the description
                assert lock.holder(path) == {}
            held.describe(mode="daemon")
            assert lock.holder(path) == {"pid": os.getpid(), "mode": "daemon"}
            if number == 0:
                assert lock.acquire(path) is None
            held.release()
    finally:
        asking.kill()
        asking.communicate()


def test_a_held_reader_delays_neither_the_end_nor_new_lines(world, start, until):
    """With a snapshot held open, new lines are indexed, and SIGTERM ends it with exit 0."""
    t = world.transcript()
    t.append(t.prompt("before"))
    world.run("sessiond", "sync", check=0)
    script = (
        "import sys; from pathlib import Path; from sess_schema.connection import open_reader\n"
        "db = open_reader(Path(sys.argv[1])); db.execute('BEGIN')\n"
        "db.execute('SELECT count(*) FROM events').get\n"
        "print('holds', flush=True); sys.stdin.read()"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", script, world.state / "index.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert must(reader.stdout).readline() == b"holds\n"
        process = start()
        t.append(t.prompt("after"))
        until(lambda: world.found("after"))
        process.terminate()
        assert process.wait(LIMIT) == 0
        assert reader.poll() is None
    finally:
        reader.communicate()
    world.check()
