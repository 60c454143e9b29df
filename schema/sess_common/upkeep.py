"""Two small files beside the index: when it was last checked and backed up, and what its writer does now."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


CHECK, BACKUP = "check", "backup"


def note(data: Path, what: str, *, ok: bool, **more: Any) -> None:
    """Remember that it was done just now."""
    known = _read(data)
    known[what] = {"at": int(time.time() * 1000), "ok": ok, **more}
    beside = data / f".upkeep.{os.getpid()}"
    with contextlib.suppress(OSError):  # a note is not worth failing for
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(known, file)
        os.replace(beside, data / "upkeep.json")


def last(data: Path, what: str) -> dict[str, Any] | None:
    found = _read(data).get(what)
    return found if isinstance(found, dict) else None


def _read(data: Path) -> dict[str, Any]:
    try:
        known = json.loads((data / "upkeep.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


# What readers wait by: a phase in words, else bytes.
DOING, DONE, TOTAL = "doing", "done_bytes", "total_bytes"


def writer_status(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The last facts written, or {}."""
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
