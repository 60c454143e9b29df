"""Which file systems are mounted below the watched folders (Linux; elsewhere none are seen)."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Sequence

_LIST = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mounts:
    """Reads the kernel's list when it says that the list changed."""

    def __init__(self) -> None:
        self._poll: select.poll | None = None
        self._fd = -1
        self._known: dict[str, int] = {}  # numbers of mounts, by path

    def below(self, roots: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Mounts below the roots, with their numbers: another mount has another one."""
        if self._changed():
            self._known = self._read()
        return {
            path: (number, 0)
            for path, number in self._known.items()
            if any(path.startswith(root.rstrip(os.sep) + os.sep) for root in roots)
        }

    def _changed(self) -> bool:
        if self._fd < 0:
            try:
                self._fd = os.open(_LIST, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
            self._poll = select.poll()
            self._poll.register(self._fd, select.POLLPRI)
            return True
        assert self._poll is not None
        return bool(self._poll.poll(0))

    def _read(self) -> dict[str, int]:
        os.lseek(self._fd, 0, os.SEEK_SET)
        text = b""
        while data := os.read(self._fd, 1 << 16):
            text += data
        found = {}
        for line in text.splitlines():
            number, _parent, _device, _root, path, *_ = line.split(b" ")
            plain = _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), path)
            found[os.fsdecode(plain)] = int(number)
        return found
