"""Reads small JSON files, and finds the directories that agents keep their files in."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from typing import Any, Generic, TypeVar

import orjson

from sess_common.decode import decode
from sessiond.sourcekit import disk

_LARGEST_FILE = 64 << 10
# VS Code and editors made from it, here and as the server side of a remote one.
_EDITORS = (
    *("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae", "Kiro", "Positron"),
    *("Antigravity",),
)
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server")

Kept = TypeVar("Kept")


def small_json(path: str, largest: int = _LARGEST_FILE) -> dict[str, Any]:
    """The object in a small regular JSON file, or {}."""
    try:
        facts, _ = decode(small_file(path, largest))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def small_file(path: str, largest: int = _LARGEST_FILE) -> bytes:
    """The bytes of a small regular file, or none; never opens a link, pipe or device."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if disk.is_link(path):
            return b""
        descriptor = disk.opened(path, flags)
    except (OSError, ValueError):
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        raw = os.read(descriptor, largest + 1)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return raw if len(raw) <= largest else b""


def first_line(path: str, largest: int = _LARGEST_FILE) -> bytes:
    """The first line of a regular file, or none if it is longer."""
    try:
        if not stat.S_ISREG(disk.lstat(path).st_mode):
            return b""
        with open(disk.opened(path), "rb") as file:
            line = file.readline(largest)
    except OSError:
        return b""
    return line if line.endswith(b"\n") else b""


def first_object(head: bytes) -> dict[str, Any]:
    """The JSON object in the first line of a file that starts like this, or {}."""
    try:
        value = orjson.loads(head.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def holds_lines(head: bytes) -> bool:
    """Whether a file that starts like this has a JSON object in each line."""
    first, newline, rest = head.partition(b"\n")
    if not newline or not rest.strip():
        return False
    try:
        return isinstance(decode(first)[0], dict)
    except ValueError:
        return False


class KeptFile(Generic[Kept]):
    """What a small file says, read again only when the file changed."""

    def __init__(self, read: Callable[[bytes], Kept], largest: int = _LARGEST_FILE) -> None:
        self._read = read
        self._largest = largest
        self._kept: dict[str, tuple[tuple[int, ...], Kept]] = {}

    def of(self, path: str) -> Kept:
        try:
            found = disk.lstat(path)
        except OSError:
            mark: tuple[int, ...] = ()
        else:
            mark = (found.st_ino, found.st_size, found.st_mtime_ns)
        kept = self._kept.get(path)
        if kept is None or kept[0] != mark:
            kept = self._kept[path] = mark, self._read(small_file(path, self._largest))
        return kept[1]


class Folders:
    """The user's directories, from the environment and the platform."""

    def __init__(self, environ: Mapping[str, str], platform: str = sys.platform) -> None:
        self._environ = environ
        self._platform = platform

    def home(self) -> str:
        return self._environ.get("HOME") or os.path.expanduser("~")

    def config_home(self) -> str:
        return self._environ.get("XDG_CONFIG_HOME") or os.path.join(self.home(), ".config")

    def data_home(self) -> str:
        return self._environ.get("XDG_DATA_HOME") or os.path.join(self.home(), ".local", "share")

    def state_home(self) -> str:
        return self._environ.get("XDG_STATE_HOME") or os.path.join(self.home(), ".local", "state")

    def roaming(self) -> str:
        """Where programs keep their data on Windows."""
        return self._environ.get("APPDATA") or os.path.join(self.home(), "AppData", "Roaming")

    def local(self) -> str:
        """Where programs keep data of this machine only on Windows."""
        return self._environ.get("LOCALAPPDATA") or os.path.join(self.home(), "AppData", "Local")

    def application_data(self) -> str:
        """Where desktop programs keep their settings on this system."""
        if self._platform == "darwin":
            return os.path.join(self.home(), "Library", "Application Support")
        return self.roaming() if self._platform == "win32" else self.config_home()

    def extension_storages(self, extension: str) -> list[str]:
        """Where an extension of VS Code keeps its files, for each editor that may run it."""
        data, home = self.application_data(), self.home()
        editors = [os.path.join(data, name) for name in _EDITORS]
        editors += [os.path.join(home, name, "data") for name in _SERVERS]
        return [os.path.join(one, "User", "globalStorage", extension) for one in editors]

    def zone(self) -> tzinfo | None:
        """Where the machine's clock is, for agents that write its time; None: the system's."""
        name = self._environ.get("TZ", "").removeprefix(":")
        if name in ("", "UTC"):
            return UTC if name else None
        from zoneinfo import ZoneInfo  # rarely needed

        try:
            return ZoneInfo(name)
        except (ValueError, OSError):
            return None

    def expand(self, path: str) -> str:
        if path == "~" or path.startswith(("~/", "~" + os.sep)):
            return self.home() + path[1:]
        return path
