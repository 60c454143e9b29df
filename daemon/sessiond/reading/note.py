"""A note of the file that is being read, for the next start if the process dies over it.

Not synced: it is for a process that is killed, not for a power cut.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass

BIG = 1 << 20  # bytes to read that may have used up the memory; less can only have hung
HUNG_SECONDS = 60


@dataclass(slots=True, frozen=True)
class Reading:
    path: str
    offset: int
    unread: int
    at: float  # seconds since 1970

    def is_suspect(self) -> bool:
        """Whether the file may be why the process died, and not a kill at a bad moment."""
        return self.unread >= BIG or time.time() - self.at > HUNG_SECONDS


class Note:
    """The note of the process that holds the writer's lock."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None  # open during a pass
        self._length = 0

    def left(self) -> Reading | None:
        """What a process that died was reading."""
        try:
            with open(self._path, "rb", opener=_open) as file:
                raw = file.read(1 << 16)
            self._length = len(raw)
            return Reading(**json.loads(raw))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, path: str, offset: int, unread: int) -> None:
        reading = {"path": path, "offset": offset, "unread": unread, "at": time.time()}
        text = json.dumps(reading).encode()
        with contextlib.suppress(OSError):  # a full disk: do without
            if self._fd is None:
                self._fd = _open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
            self._length = max(self._length, len(text))
            os.pwrite(self._fd, text.ljust(self._length), 0)

    def clear(self) -> None:
        with contextlib.suppress(OSError):
            if self._length:
                os.truncate(self._path if self._fd is None else self._fd, 0)
        self._length = 0
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
