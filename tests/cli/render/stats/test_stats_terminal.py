"""What `sess stats` writes to a terminal: nothing wider than it, nothing that it would obey."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import unicodedata

import pytest
from tests.conftest import BIN, World
from tests.waiting import LIMIT

from sess_cli.render.stats import VIEWS

SESSION = "11111111-1111-4111-8111-111111111111"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e"
LONG = "very-long-name-" * 8
WHAT = [
    (), *((view,) for view in VIEWS), (SESSION,), ("files", "a.py"), ("tools", "--detail"),
    ("--explain", "total"), ("errors", "--explain", "exit code"), ("windows", "--budget", "5M/day"),
    *(("--by", by) for by in ("model", "tool", "file", "project", "session", "branch", "hour",
                             "day,model")),
]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Names as long and as bad as they get, in every field that a view shows."""
    world = World(tmp_path_factory.mktemp("hostile"))
    t = world.transcript(SESSION)
    bad = {"cwd": f"/code/{HOSTILE}/{LONG}", "gitBranch": HOSTILE + LONG}
    t.append(t.prompt(f"{HOSTILE}{LONG} 漢字", **bad))
    for number, tool in enumerate(
        (HOSTILE + LONG, f"mcp__{HOSTILE}{LONG}__{LONG}", "Bash", "Edit")
    ):
        call = t.call(
            f"call{number}",
            tool,
            command=f"{HOSTILE}{LONG} x",
            file_path=f"/{HOSTILE}/{LONG}/a.py",
            old_string="a",
            new_string="b",
        )
        call["message"]["model"] = HOSTILE + LONG
        t.append({**call, **bad})
        failed = number in (0, 2)
        said = f"Exit code 1 {HOSTILE}{LONG}"
        t.append({**t.result(f"call{number}", said, is_error=failed), **bad})
    t.append({**t.answer(f"{HOSTILE} API Error: 500"), "isApiErrorMessage": True})
    world.ingest()
    return world


def seen(world, *arguments, lines=40):
    """What a terminal of 80 columns gets."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))
    process = subprocess.Popen(
        [BIN / "sess", "stats", *arguments, "--no-sync", "--utc"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**world.env, "TERM": "xterm", "NO_COLOR": "1"},
    )
    os.close(theirs)
    written = b""
    try:
        while more := os.read(ours, 1 << 16):
            written += more
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(LIMIT) in (0, 3)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("arguments", WHAT, ids=" ".join)
def test_everything_fits_and_is_inert(hostile, arguments):
    """80 columns; no control character but the end of a line."""
    text = seen(hostile, *arguments)
    assert text.strip()
    for line in text.split("\n"):
        assert sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line) <= 80, line
        assert all(c.isprintable() for c in line), line


@pytest.mark.parametrize("lines", [24, 40])
def test_the_dashboard_fits_a_screen(hostile, lines):
    """With its prompt below."""
    assert seen(hostile, lines=lines).count("\n") < lines


@pytest.mark.parametrize("by", ["project", "file"])
def test_a_path_keeps_its_end(world, by):
    """Where paths differ."""
    t = world.transcript()
    folder = f"/code/{LONG}/demo"
    call = {**t.call("call1", "Read", file_path=f"{folder}/end.py"), "cwd": folder}
    t.append({**t.prompt("go"), "cwd": folder}, call, t.result("call1", "ok", cwd=folder))
    world.ingest()
    assert ("end.py  " if by == "file" else "/demo  ") in seen(world, "--by", by)
