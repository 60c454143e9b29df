"""Reports the writer's state: to the service manager, and in a small file for clients.

The first speaks the sd_notify protocol without libsystemd; calls do nothing if no manager listens,
and never raise. `sessiond status` and waiting clients read the second.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from sess_common.upkeep import DOING, DONE, TOTAL, writer_status
from sess_schema import __version__

LAUNCHD_LABEL = "io.github.sessiond"
EVERY = 2.0  # seconds between writes of the file, each a page of the disk
AT_LEAST = 30.0  # also if nothing happens: an old file means that the loop hangs
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BUSY_SECONDS = 120  # without another report by then, the manager may stop us
_BUSY_EVERY = 1.0
_last_busy = -_BUSY_EVERY


def ready(status: str) -> None:
    """Startup or a reload is complete."""
    _send("READY=1", _status(status))


def status(text: str) -> None:
    """One line for `systemctl --user status`."""
    _send(_status(text))


def alive() -> None:
    """Feed the watchdog; call it from the loop whose progress matters, not from a timer."""
    _send("WATCHDOG=1")


def busy(text: str) -> None:
    """Report long work, such as an index upgrade; may be called often.

    Without it, the manager would stop a long startup and retry it forever.
    """
    global _last_busy  # noqa: PLW0603
    if time.monotonic() - _last_busy < _BUSY_EVERY:
        return
    _last_busy = time.monotonic()
    _send(f"EXTEND_TIMEOUT_USEC={_BUSY_SECONDS * 1_000_000}", "WATCHDOG=1", _status(text))


def reloading() -> None:
    """The configuration is being reloaded, until `ready`."""
    # systemd ignores RELOADING without the time it was sent.
    _send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


def stopping() -> None:
    """The daemon is stopping."""
    _send("STOPPING=1")


def under_launchd() -> bool:
    """Whether launchd started this process as our agent, and not a shell in Terminal."""
    return os.environ.get("XPC_SERVICE_NAME") == LAUNCHD_LABEL


def _status(text: str) -> str:
    # A line break would start another assignment.
    return "STATUS=" + " ".join(text.split())


def _send(*assignments: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    message = "\n".join(assignments).encode(errors="replace")
    if address.startswith("@"):
        address = "\0" + address[1:]
    # ValueError: a NUL inside the address.
    with (
        contextlib.suppress(OSError, ValueError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel,
    ):
        # A busy manager must not block the ingest loop.
        channel.settimeout(1)
        channel.connect(os.fsencode(address))
        channel.send(message)


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

    def close(self) -> None:
        if writer_status(self._path).get("pid") == self._facts["pid"]:  # not another daemon's
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
