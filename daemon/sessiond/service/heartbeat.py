"""The running writer's state, in a small file that `sessiond status` and waiting clients read."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from sess_common.status_file import DOING, DONE, TOTAL, read
from sess_schema import __version__

EVERY = 2.0  # seconds between writes of the file, each a page of the disk
AT_LEAST = 30.0  # also if nothing happens: an old file means that the loop hangs

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Heart:
    """Collects facts and writes them regularly, atomically and with mode 0600."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = 0.0
        self._unwritten = False
        self._facts: dict[str, Any] = {
            "pid": os.getpid(),
            "version": __version__,
            "started_at": _now(),
            "hints": 0,
            "records": 0,
            "read_bytes": 0,
            "overflows": 0,
            "pending_bytes": 0,
            "error": None,
        }
        self._skipped: dict[str, str] = {}

    def wait_before_first(self) -> None:
        """Short work writes no file at all."""
        self._written = time.monotonic()

    @property
    def blind(self) -> bool:
        """Whether some directories are polled because they cannot be watched."""
        return bool(self._facts.get("blind"))

    @property
    def wal_pinned(self) -> bool:
        """Whether a reader keeps the WAL from shrinking."""
        return bool(self._facts.get("wal_pinned"))

    def beat(self, *, error: str | None = None, hints: int = 0, records: int = 0,
             read_bytes: int = 0, **facts: Any) -> None:  # fmt: skip
        self._facts["error"] = error
        self._facts["hints"] += hints
        self._facts["records"] += records
        self._facts["read_bytes"] += read_bytes
        self._facts.update(facts)
        self._unwritten = True
        if error:
            self._write()
        else:
            self.flush()

    def doing(self, text: str) -> None:
        """Long work of which only words can be told."""
        facts: dict[str, Any] = {DOING: text}
        self.beat(**facts)

    def reading(self, done: int, total: int) -> None:
        """How much of what a pass found is read."""
        facts: dict[str, Any] = {DOING: None, DONE: done, TOTAL: total}
        self.beat(pending_bytes=max(0, total - done), **facts)

    def flush(self) -> None:
        """Write the collected facts if it is time."""
        if time.monotonic() - self._written >= (EVERY if self._unwritten else AT_LEAST):
            self._write()

    def tell(self, **facts: Any) -> None:
        """Facts that change rarely."""
        if any(self._facts.get(name) != value for name, value in facts.items()):
            self._facts.update(facts)
            self._unwritten = True

    def walked(self, *, skipped: list[tuple[str, str]], **facts: Any) -> None:
        """After a full walk: replace the list of skipped files."""
        self._skipped = dict(skipped)
        self._facts.update(facts, walked_at=_now(), pending_bytes=0, error=None)
        self._facts.update({DOING: None, DONE: 0, TOTAL: 0})
        self._write()

    def skip(self, path: str, why: str) -> None:
        self._skipped[path] = why

    def stop(self) -> None:
        if read(self._path).get("pid") == self._facts["pid"]:  # not another daemon's
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        self._written, self._unwritten = time.monotonic(), False
        facts = {
            **self._facts,
            "at": _now(),
            "skipped": [{"path": p, "reason": w} for p, w in self._skipped.items()],
        }
        text = json.dumps(facts).encode()
        new = self._path.with_name(self._path.name + ".new")
        try:
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(text)
            os.replace(new, self._path)
        except OSError:  # a full disk must not stop the daemon; the next beat retries
            with contextlib.suppress(OSError):
                self._write_in_place(text)

    def _write_in_place(self, text: bytes) -> None:
        """Without space for a new file, report that in the blocks of the old one."""
        fd = os.open(self._path, os.O_WRONLY | _NO_LINK)
        try:
            os.ftruncate(fd, os.pwrite(fd, text, 0))
        finally:
            os.close(fd)


def _now() -> int:
    return time.time_ns() // 1_000_000
