"""A short life of some transcripts, and what an index says of it in the end."""

from __future__ import annotations

import os
from contextlib import suppress

import apsw

ORIGINAL, FORK = "aaaaaaaa-1111-4111-8111-111111111111", "bbbbbbbb-1111-4111-8111-111111111111"
MOVED, GONE = "cccccccc-1111-4111-8111-111111111111", "dddddddd-1111-4111-8111-111111111111"


def history(world):
    """Changes of the files, one before each `yield`, which is followed by a sync."""
    original, fork = world.transcript(ORIGINAL), world.transcript(FORK)
    moved, gone = world.transcript(MOVED), world.transcript(GONE)
    lines = [original.prompt("where is it"), original.call("c1", command="grep -r it")]
    original.append(*lines, b"broken line\n")
    fork.append(*({**line, "sessionId": FORK} for line in lines), b'{"half')
    moved.append(moved.prompt("move me"))
    gone.append(gone.prompt("delete me"))
    yield
    original.append(original.result("c1", "found it " * 50, is_error=True))
    fork.path.write_bytes(fork.encode(fork.prompt("rewritten")) * 2)
    gone.path.unlink()
    there = moved.path.parent.with_name("-elsewhere")
    there.mkdir()
    moved.path.rename(there / moved.path.name)
    yield
    original.append(original.answer("that is all"))
    yield


def close(db):
    """SQLite ignores a failed last checkpoint, but the injected exception propagates."""
    if db is not None:
        with suppress(apsw.FullError, apsw.IOError):
            db.close()


def facts(world):
    """The content of the index, with paths that do not depend on where the test runs."""
    found = world.dump()
    found["chunks"] = [
        (os.path.relpath(path, world.projects), world.restored(path))
        for (path,) in world.sql("SELECT path FROM sources ORDER BY path")
    ]
    found["titles"] = world.sql("SELECT native_id, title FROM sessions ORDER BY 1")
    return found
