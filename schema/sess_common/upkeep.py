"""Small files beside the index: when it was last checked and backed up, and what its writer does.

The client makes notes in the first, because it never writes to the index. The writer replaces the
second every second while it works.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

CHECK, BACKUP = "check", "backup"
SIZE = "size"  # of the index, in files
# What readers of the writer's status wait by: a phase in words, else bytes.
DOING, DONE, TOTAL = "doing", "done_bytes", "total_bytes"
_NOTES = "upkeep.json"


def note(data: Path, what: str, *, ok: bool, **more: Any) -> None:
    """Remember that it was done just now."""
    notes = _facts(data / _NOTES)
    notes[what] = {"at": int(time.time() * 1000), "ok": ok, **more}
    beside = data / f".upkeep.{os.getpid()}"
    with suppress(OSError):  # a note is not worth failing for
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(notes, file)
        os.replace(beside, data / _NOTES)


def last(data: Path, what: str) -> dict[str, Any] | None:
    note = _facts(data / _NOTES).get(what)
    return note if isinstance(note, dict) else None


def writer_status(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the writer last wrote of its work, or {}."""
    return _facts(path)


def _facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
