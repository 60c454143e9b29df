"""What changes around a running daemon: mounts, rights, files that cannot be read."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.rights import obey_permissions
from tests.waiting import LIMIT

BIN = Path(sys.executable).parent


@pytest.fixture
def start(world):
    """Start daemons that end with the test."""
    running = []

    def run(*before, **options):
        command = [*before, BIN / "sessiond", "start"]
        nowhere: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running.append(subprocess.Popen(command, env=world.env, **nowhere, **options))
        return running[-1]

    yield run
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT) == 0


def test_a_mount_below_a_root_is_seen_at_once(world, start, until):
    """Long before the next walk, although the kernel tells of no file in it."""
    world.state.mkdir(mode=0o700)
    (world.state / "config.toml").write_text("[daemon]\nreconcile_seconds = 3600\n")
    t = world.transcript()
    t.append(t.prompt("early words"))
    own = ["unshare", "--user", "--map-root-user", "--mount"]
    if (
        not shutil.which("nsenter")
        or subprocess.run([*own, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("NOT TESTED: this system has no mount namespaces for everyone")
    folder = world.projects / "-mounted here"
    folder.mkdir()
    world.ingest()
    process = start(*own, "--")
    until(lambda: "watching" in world.run("sessiond", "status").stdout)
    other = world.transcript("22222222-2222-4222-8222-222222222222", folder="-elsewhere")
    record = other.encode(other.prompt("mounted words")).decode()
    script = 'mount -t tmpfs none "$1" && printf %s "$2" > "$1/$3"'
    enter = ["nsenter", f"--target={process.pid}", "--user", "--mount", "--preserve-credentials"]
    name = f"{other.session}.jsonl"
    subprocess.run([*enter, "--", "sh", "-c", script, "sh", folder, record, name], check=True)
    until(lambda: world.found("mounted"))
    more = other.encode(other.prompt("later words")).decode()
    script = 'printf %s "$2" >> "$1/$3"'
    subprocess.run([*enter, "--", "sh", "-c", script, "sh", folder, more, name], check=True)
    until(lambda: world.found("later"))


def test_an_index_that_becomes_writable_is_written(world, start, until):
    """A daemon that started on a read-only index waits, says so, and goes on when it may write."""
    t = world.transcript()
    t.append(t.prompt("early words"))
    world.ingest()
    index = world.state / "index.db"
    index.chmod(0o400)
    t.append(t.prompt("later words"))
    start(preexec_fn=obey_permissions)
    until(lambda: "paused" in world.run("sessiond", "status").stdout)
    index.chmod(0o600)
    until(lambda: world.found("later"))
    until(lambda: "paused" not in world.run("sessiond", "status").stdout)
    world.check()


def test_a_file_that_cannot_be_read_is_in_the_log_once(world, start, until):
    """One line with its path and the reason, however often it is looked at."""
    t = world.transcript()
    t.append(t.prompt("early words"))
    other = world.transcript("22222222-2222-4222-8222-222222222222")
    other.append(other.prompt("readable words"))
    world.ingest()
    t.append(t.prompt("unseen words"))
    t.path.chmod(0)
    start(preexec_fn=obey_permissions)
    for count in range(3):
        other.append(other.prompt(f"more{count}"))
        until(lambda count=count: world.found(f"more{count}"))
    log = (world.state / "sessiond.log").read_text()
    assert log.count(f"skipped {t.path}: permission denied") == 1
