"""Looks at the disk, for agents and for walks, and notes what was looked at; reads small files.

A pass leaves a list of everything that it looked at (`sess_common.receipt`). Agents are free in how
they find their places, so they look through these functions, which note it during a walk.
What they do once a file is to be read is not noted.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar, Token
from datetime import UTC, tzinfo
from fnmatch import fnmatch
from typing import Any, Generic, Self, TypeVar

import orjson

from sess_common import receipt
from sess_common.decode import decode

# A directory that changed this recently may change again without another time on it.
_TOO_RECENT = 3_000_000_000
_MOST_LINKS = 40  # as the kernel follows
_WILD = frozenset("*?[")
_LARGEST_FILE = 64 << 10
# VS Code and editors made from it, here and as the server side of a remote one.
_EDITORS = (
    *("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae", "Kiro", "Positron"),
    *("Antigravity", "Trae CN", "Qoder", "CodeBuddy", "CodeBuddy CN"),
)
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server")

Kept = TypeVar("Kept")


class Notes:
    """What was looked at between `with` and its end; can be entered several times."""

    def __init__(self) -> None:
        self.environ = _Environment()
        self.looked: dict[str, str] = {}
        self._relative = False  # something was looked at from the current directory
        self._newest = 0  # of the times of directories
        self._began = time.time_ns()
        self._entered: list[Token[Notes | None]] = []

    def __enter__(self) -> Self:
        self._entered.append(_notes.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _notes.reset(self._entered.pop())

    def add(self, how: str, path: str, seen: str) -> None:
        self._relative = self._relative or not os.path.isabs(path)
        self.looked.setdefault(how + path, seen)  # what was seen first is what was used

    def add_listed(self, folder: os.stat_result) -> None:
        self._newest = max(self._newest, folder.st_mtime_ns, folder.st_ctime_ns)

    def add_way(self, path: str, links: int = _MOST_LINKS) -> None:
        """Every step to what a path leads to; what else is in the directories does not matter."""
        for step in _steps(path):
            try:
                at = os.lstat(step)
            except OSError as error:
                self.add(receipt.SELF, step, receipt.missing(error))
                return
            if stat.S_ISDIR(at.st_mode):
                self.add(receipt.SELF_IDENTITY, step, receipt.identity(at))
                continue
            self.add(receipt.SELF, step, receipt.mark(at))
            if stat.S_ISLNK(at.st_mode) and links:
                self.add_way(os.path.join(os.path.dirname(step), os.readlink(step)), links - 1)

    def add_code(self) -> None:
        """Another version may look elsewhere, and read the same bytes differently."""
        with self:
            for name, module in list(sys.modules.items()):
                if name.partition(".")[0] in ("sessiond", "sess_schema") and module.__file__:
                    for path in (module.__file__, *getattr(module, "__path__", ())):
                        exists(path)

    def are_certain(self) -> bool:
        """Whether they would show every change."""
        return not self._relative and self._newest < self._began - _TOO_RECENT


_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)


class _Environment(Mapping[str, str]):
    """The variables, and which of them were asked for."""

    def __init__(self) -> None:
        self.asked = {"HOME"}

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        self.asked.update(os.environ)
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def stat_of(path: str) -> os.stat_result:
    return _look(path, receipt.TARGET)


def lstat_of(path: str) -> os.stat_result:
    return _look(path, receipt.SELF)


def _look(path: str, how: str) -> os.stat_result:
    notes = _notes.get()
    try:
        seen = os.lstat(path) if how == receipt.SELF else os.stat(path)
    except OSError as error:
        if notes is not None:
            notes.add(how, path, receipt.missing(error))
        raise
    if notes is not None:
        notes.add(how, path, receipt.mark(seen))
    return seen


def exists(path: str) -> bool:
    return _mode(path, receipt.TARGET) != 0


def lexists(path: str) -> bool:
    return _mode(path, receipt.SELF) != 0


def is_file(path: str) -> bool:
    return stat.S_ISREG(_mode(path, receipt.TARGET))


def is_link(path: str) -> bool:
    return stat.S_ISLNK(_mode(path, receipt.SELF))


def _mode(path: str, how: str) -> int:
    try:
        return _look(path, how).st_mode
    except (OSError, ValueError):  # a path from elsewhere may have a NUL in it
        return 0


def real(path: str) -> str:
    """The path without links."""
    if (notes := _notes.get()) is not None:
        notes.add_way(path)
    return os.path.realpath(path)


def _steps(path: str) -> list[str]:
    steps = [path]
    while (above := os.path.dirname(steps[-1])) != steps[-1]:
        steps.append(above)
    return steps[::-1]


def entries(folder: str) -> list[os.DirEntry[str]]:
    if (notes := _notes.get()) is not None:
        with contextlib.suppress(OSError):
            notes.add_listed(stat_of(folder))
    with os.scandir(folder) as listed:
        return list(listed)


def names(folder: str) -> list[str]:
    return [entry.name for entry in entries(folder)]


def below(folder: str, *parts: str) -> list[str]:
    """What exists below a folder, sorted; each part is a name or a pattern like `*.json`."""
    paths = [folder]
    for part in parts:
        if _WILD.isdisjoint(part):
            paths = [path for one in paths if lexists(path := os.path.join(one, part))]
        else:
            paths = [path for one in paths for path in _matching(one, part)]
    return sorted(paths)


def _matching(folder: str, pattern: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in names(folder):
            if fnmatch(name, pattern):
                yield os.path.join(folder, name)


def opened(path: str, flags: int = os.O_RDONLY) -> int:
    """A descriptor, for what a walk reads: settings, lists, and the first bytes of files."""
    if _notes.get() is not None:
        lexists(path)
        exists(path)
    return os.open(path, flags)


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
        if is_link(path):
            return b""
        descriptor = opened(path, flags)
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
        if not stat.S_ISREG(lstat_of(path).st_mode):
            return b""
        with open(opened(path), "rb") as file:
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
            file = lstat_of(path)
        except OSError:
            mark: tuple[int, ...] = ()
        else:
            mark = (file.st_ino, file.st_size, file.st_mtime_ns)
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
