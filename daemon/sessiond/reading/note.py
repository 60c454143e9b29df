"""A note of the file that is being read, for the next start if the process dies over it.

Not synced: it is for a process that is killed, not for a power cut.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass

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
        self._written = False  # it may have to be cleared

    def left(self) -> Reading | None:
        """What a process that died was reading."""
        try:
            with open(self._path, "rb", opener=_open) as file:
                self._written = True
                return Reading(**json.loads(file.read(1 << 16)))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, path: str, offset: int, unread: int) -> None:
        text = json.dumps(asdict(Reading(path, offset, unread, time.time()))).encode()
        with (
            contextlib.suppress(OSError),  # a full disk: do without
            open(self._path, "wb", buffering=0, opener=_open) as file,
        ):
            self._written = True
            file.write(text)

    def clear(self) -> None:
        if self._written:
            with contextlib.suppress(OSError):
                os.truncate(self._path, 0)
            self._written = False


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
