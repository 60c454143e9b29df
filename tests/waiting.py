"""Waiting for what happens in other processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

LIMIT = 60.0  # seconds; only a program that hangs takes so long, however busy the machine


def wait_until(happens, what="it did not happen"):
    """The first true answer."""
    end = time.monotonic() + LIMIT
    while not (found := happens()):
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.02)
    return found


def let_it_write(world, times, or_until=bool):
    """Until a daemon has written to its index so often; at once for 0."""
    log = world.state / "index.db-wal"

    def written():
        try:
            return log.stat().st_mtime_ns, log.stat().st_size
        except OSError:
            return None

    for _ in range(times):
        before = written()
        wait_until(lambda before=before: written() != before or or_until(), "it writes nothing")


def computed(pid) -> float:
    """Seconds that a process has computed."""
    if sys.platform == "linux":
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100
    told = subprocess.run(
        ["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True
    ).stdout
    minutes, _, seconds = told.strip().rpartition(":")
    return 60 * float(minutes.rpartition(":")[2] or 0) + float(seconds)


def lines_run(work) -> int:
    """How many lines of Python some work takes: its cost without a clock."""
    count = 0

    def trace(_frame, event, _value):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
