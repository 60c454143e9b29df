"""A file to edit, the log of edits in a private home, and processes that die at a given step."""

from __future__ import annotations

import os
import signal
import time

import pytest

from sess_cli.edit import live, log
from sess_cli.edit.log import Change

LINES = [b'{"line":%d,"text":"%s"}\n' % (number, b"x" * number) for number in range(1, 9)]
BEFORE = b"".join(LINES)
AFTER = b"".join(LINES[:2] + LINES[4:])
KEEP = [(0, len(LINES[0] + LINES[1])), (len(b"".join(LINES[:4])), len(BEFORE))]
CUT = Change("cut", session="s", cut=("3",), pulled=("4",))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SESSIOND_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def file(home):
    """A transcript that nobody has written to for an hour."""
    path = home / "agent" / "session.jsonl"
    path.parent.mkdir()
    path.write_bytes(BEFORE)
    rest(path)
    return path


def rest(path, seconds=3600):
    os.utime(path, (time.time() - seconds,) * 2)


def cut(path, pieces=KEEP, change=CUT, **options):
    with live.opened(str(path), **options) as opened:
        return opened.rewrite(pieces, change, opened.content())


def in_child(body):
    """Run `body` in a forked process; return how it ended."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            body()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def dying_at(step):
    """What `live.reached` does in a process that is killed at a step."""

    def reached(name):
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def leftovers(path):
    return sorted(one.name for one in path.parent.iterdir() if one.name != path.name)


def states():
    return [(edit.command, edit.state) for edit in log.entries()]
