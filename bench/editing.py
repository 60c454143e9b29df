"""Edits: a record cut out of a long session, and brought back."""

import os
import time
from collections.abc import Callable

from harness import SESS, SESSIOND, run
from report import Context

HOUR = 3600


def cut(c: Context) -> None:
    """The index is up to date before each: reading a rewritten file again is another bench."""
    store = c.work.store(5 if c.quick else 50, 1)
    path = max(store.home.rglob("*.jsonl"), key=lambda one: one.stat().st_size)
    commands = {
        "cut": [SESS, "cut", "last", "5", "--relink", "--force", "--yes"],
        "undone": [SESS, "undo"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(c.repeat):
        for name, command in commands.items():
            os.utime(path, (time.time() - HOUR,) * 2)
            run([SESSIOND, "sync"], store.env)
            seconds[name].append(run(command, store.env).seconds)
    for name, taken in seconds.items():
        middle = sorted(taken)[len(taken) // 2]
        c.wall("cut", f"session of {store.mb:.0f} MB {name}", middle, 1000)


BENCHES: dict[str, Callable[[Context], None]] = {"cut": cut}
