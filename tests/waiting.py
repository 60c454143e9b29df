"""Wait for events in other processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

LIMIT = 60.0  # seconds; only a hanging program takes this long, even on a busy machine


def wait_until(happens, what="it did not happen"):
    """The first true result."""
    end = time.monotonic() + LIMIT
    while not (found := happens()):
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.02)
    return found


def let_it_write(world, times, or_until=bool):
    """Wait until a daemon has written to its index `times` times; 0 returns at once."""
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
    """The CPU seconds that a process has used."""
    if sys.platform == "linux":
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100
    told = subprocess.run(
        ["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True
    ).stdout
    minutes, _, seconds = told.strip().rpartition(":")
    return 60 * float(minutes.rpartition(":")[2] or 0) + float(seconds)


def lines_run(work) -> int:
    """How many lines of Python a function runs: its cost without a clock."""
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
