"""Small files that tell about larger ones, and the directories that agents keep theirs in."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

from sess_schema.decode import decode

_LARGEST_FILE = 64 << 10


def small_json(path: str, largest: int = _LARGEST_FILE) -> dict[str, Any]:
    """A small regular file of JSON, or nothing; never a link, a pipe or a device."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if os.path.islink(path):
            return {}
        descriptor = os.open(path, flags)
    except (OSError, ValueError):
        return {}
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return {}
        raw = os.read(descriptor, largest + 1)
    except OSError:
        return {}
    finally:
        os.close(descriptor)
    if len(raw) > largest:
        return {}
    try:
        facts, _ = decode(raw)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


class Places:
    """The directories of a user, as the environment and the system have them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def home(self) -> str:
        return self._environ.get("HOME") or os.path.expanduser("~")

    def config_home(self) -> str:
        return self._environ.get("XDG_CONFIG_HOME") or os.path.join(self.home(), ".config")

    def roaming(self) -> str:
        """Where programs keep their data on Windows."""
        return self._environ.get("APPDATA") or os.path.join(self.home(), "AppData", "Roaming")

    def expand(self, path: str) -> str:
        if path == "~" or path.startswith(("~/", "~" + os.sep)):
            return self.home() + path[1:]
        return path
