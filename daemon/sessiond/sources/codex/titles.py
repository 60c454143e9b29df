"""Names that people gave to threads, listed next to the sessions; the last name counts."""

from __future__ import annotations

import os

import orjson

from sessiond.sourcekit.values import as_text

_LARGEST = 4 << 20


class ThreadNames:
    """Caches each list until its file changes."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[int, int], dict[str, str]]] = {}

    def of(self, path: str) -> dict[str, str]:
        try:
            found = os.lstat(path)
        except OSError:
            return {}
        mark = found.st_mtime_ns, found.st_size
        kept = self._read.get(path)
        if kept is None or kept[0] != mark:
            kept = self._read[path] = mark, _names(path)
        return kept[1]


def _names(path: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for line in _tail(path).split(b"\n"):
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(entry, dict):
            thread, name = as_text(entry.get("id")), as_text(entry.get("thread_name"))
            if thread and name:
                names[thread] = " ".join(name.split())
    return names


def _tail(path: str) -> bytes:
    """The end of a regular file; never a link, a pipe or a device."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        try:
            file.seek(-_LARGEST, os.SEEK_END)
        except OSError:
            file.seek(0)
        return file.read(_LARGEST)
