"""Private logs beside the index: a line of JSON each, of which the oldest go when there are many.

They are no tables of the index: the client never writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from sess_common import paths

TYPE_CHECKING = False  # as in `typing`, whose import takes long
if TYPE_CHECKING:
    from typing import Any


class LogFile:
    def __init__(self, name: str, *, most_bytes: int, line_bytes: int) -> None:
        """`line_bytes`: how long a line is, roughly."""
        self._name, self._most, self._line = name, most_bytes, line_bytes

    @property
    def path(self) -> str:
        return os.path.join(os.path.dirname(paths.home().index_file), self._name)

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry; a log that cannot be written is nothing that a command fails for."""
        try:
            self._shorten()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self.path, flags, 0o600)
            try:
                os.write(descriptor, json.dumps(entry).encode() + b"\n")
            finally:
                os.close(descriptor)
        except OSError:
            return

    def latest(self, most: int) -> list[dict[str, Any]]:
        """The last ones, without reading the others."""
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - most * self._line))
                return [*_read(file.read().splitlines())]
        except OSError:
            return []

    def entries(self) -> Iterator[dict[str, Any]]:
        """The oldest first; a broken line is left out."""
        try:
            with open(self.path, "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            return
        yield from _read(lines)

    def _shorten(self) -> None:
        """Drop the older half. Others may append meanwhile: what they lose are lines of a log."""
        path = self.path
        if not os.path.exists(path) or os.path.getsize(path) < self._most:
            return
        with open(path, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        shorter = f"{path}.{os.getpid()}"
        with open(os.open(shorter, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(b"".join(lines[len(lines) // 2 :]))
        os.replace(shorter, path)


def _read(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry
