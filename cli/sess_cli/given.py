"""What agents were given from the index: a line of JSON each, for `sess log --given`.

A log beside the index, not a table of it: the client never writes the index. The words that were
given are not repeated here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sess_common import paths, times

_NAME = "given.jsonl"
_MOST_BYTES = 2 << 20  # then the older half goes
_BYTES_PER_TOKEN = 3
_LINE = 300  # bytes of one, roughly


def path() -> Path:
    return paths.home().data / _NAME


def log(
    door: str, what: str, text: str, *, seconds: float, found: bool, about: list[str] | None = None
) -> None:
    """Note an answer; one that cannot be noted is given all the same.

    `door`: mcp, hook. `about`: what should not be told twice.
    """
    size = len(text.encode("utf-8", "replace"))
    line = json.dumps(
        {
            "ts": times.iso(times.now_ms()),
            "door": door,
            "what": what,
            "found": found,
            "tokens": -(-size // _BYTES_PER_TOKEN),
            "ms": round(seconds * 1000),
            "project": os.getcwd(),
            "process": os.getpid(),
            **({"about": about} if about else {}),
        }
    )
    try:
        _shorten()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path(), flags, 0o600)
        try:
            os.write(descriptor, line.encode() + b"\n")
        finally:
            os.close(descriptor)
    except OSError:
        return


def _shorten() -> None:
    """Others may append meanwhile: what they lose are lines of a log."""
    log_file = path()
    if not log_file.exists() or log_file.stat().st_size < _MOST_BYTES:
        return
    lines = log_file.read_bytes().splitlines(keepends=True)
    shorter = log_file.with_suffix(f".{os.getpid()}")
    shorter.touch(mode=0o600)
    shorter.write_bytes(b"".join(lines[len(lines) // 2 :]))
    shorter.replace(log_file)


def latest(most: int) -> list[dict[str, Any]]:
    """The last ones, without reading the others."""
    try:
        with path().open("rb") as log_file:
            log_file.seek(max(0, os.fstat(log_file.fileno()).st_size - most * _LINE))
            return [*_read(log_file.read().splitlines())]
    except OSError:
        return []


def entries() -> Iterator[dict[str, Any]]:
    """The oldest first; a broken line is left out."""
    try:
        lines = path().read_bytes().splitlines()
    except OSError:
        return
    yield from _read(lines)


def _read(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry
