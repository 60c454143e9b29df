"""Waits until the index has what a file has now."""

from __future__ import annotations

import os
import time
from contextlib import closing

from sess_cli import fresh
from sess_common import lock, paths
from sess_common.program import say
from sess_schema.connection import open_reader

_PATIENCE = 30.0
_POLL = 0.02
_SEEN = "SELECT inode, size, mtime_ns, state FROM sources WHERE path = ?"


def catch_up(path: str) -> None:
    """Index a file now: the daemon does if it runs, else a process made for it."""
    with fresh.open_index():
        pass
    after_edit(path)


def after_edit(path: str) -> None:
    """Let a running daemon read a changed file; without one, the next command does."""
    home = paths.home()
    if lock.holder(home.lock) is None:
        return
    deadline = time.monotonic() + _PATIENCE
    with closing(open_reader(home.index)) as db:
        while lock.holder(home.lock) is not None:
            seen = [(name, db.execute(_SEEN, (name,)).fetchone()) for name in _names(path)]
            known = [(name, row) for name, row in seen if row is not None]
            if not known or any(_is_read(name, row) for name, row in known):
                return
            if time.monotonic() > deadline:
                say("note: the daemon has not read the change yet; `sessiond status` shows why")
                return
            time.sleep(_POLL)


def _names(path: str) -> set[str]:
    return {path, os.path.realpath(path)}


def _is_read(path: str, seen: tuple[object, ...]) -> bool:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return seen[3] == "gone"
    return seen[:3] == (found.st_ino, found.st_size, found.st_mtime_ns)
