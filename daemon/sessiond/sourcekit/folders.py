"""Paths of folders as agents write them, on any system."""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from sessiond.sourcekit import disk

LONGEST_PATH = 32 << 10
DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|\Z)")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_HOMES = frozenset({"home", "users"})
_NOT_CODED = re.compile(r"[^A-Za-z0-9]")
_LONGEST_CODE = 200  # longer ones end in a hash instead
_MOST_LISTED = 1000  # directories that one search may list


class ProjectFolder(NamedTuple):
    """A directory that an agent keeps for one project and named after it."""

    path: str
    code: str | None = None  # what `coded` makes of the project's path, if the name says so

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    def project(self, known: Iterable[str]) -> str | None:
        """The project's path, if exactly one known or existing path has this name."""
        if "%" in self.name and (plain := absolute(unquote(self.name))):
            return plain
        if self.code is None:
            return None
        found = {path for path in known if _is_coded(path, self.code)}
        found |= set(_on_disk(self.code))
        return found.pop() if len(found) == 1 else None


def coded(path: str) -> str:
    """A path as a name: everything but ASCII letters and digits becomes a dash."""
    return _NOT_CODED.sub(lambda found: "-" * (1 + (found[0] > "\uffff")), path)


def _is_coded(path: str, code: str) -> bool:
    mine = coded(path)
    if len(mine) > _LONGEST_CODE:
        return code.startswith(mine[:_LONGEST_CODE] + "-")
    return mine == code


def _on_disk(code: str) -> Iterator[str]:
    """The directories that exist and have this code; only those are listed that may contain one."""
    start, rest = ("/", code[1:]) if code.startswith("-") else (f"{code[:1]}:\\", code[3:])
    if not rest:
        return
    left = [(start, rest)]
    for _ in range(_MOST_LISTED):
        if not left:
            return
        folder, rest = left.pop()
        for entry in _entries(folder):
            name = coded(entry.name)
            if rest == name and entry.is_dir():
                yield entry.path
            elif rest.startswith(name + "-") and entry.is_dir():
                left.append((entry.path, rest[len(name) + 1 :]))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        return disk.entries(folder)
    except OSError:
        return []


def common_folder(paths: Iterable[str]) -> str | None:
    """The deepest directory that contains every file; never a root or `/home`."""
    anchor = ""
    common: list[str] | None = None
    for path in paths:
        split = _split(path)
        if split is None:
            continue
        if common is None:
            anchor, common = split
        elif split[0].casefold() != anchor.casefold():
            return None
        else:
            common = _shared(common, split[1], cased=anchor == "/")
    if not common or (len(common) == 1 and common[0].casefold() in _HOMES):
        return None
    return anchor + ("/" if anchor == "/" else "\\").join(common)


def absolute(path: Any) -> str | None:
    """An absolute path of any system in normal form; None for anything else."""
    if not isinstance(path, str) or len(path) > LONGEST_PATH or _UNPRINTABLE.search(path):
        return None
    if DRIVE.match(path):
        clean = path.replace("/", "\\").rstrip("\\")
        return clean + "\\" if len(clean) == 2 else clean
    if path.startswith(("\\\\", "//")):
        clean = path.replace("/", "\\").strip("\\")
        return "\\\\" + clean if clean else None
    if path.startswith("/"):
        return path.rstrip("/") or "/"
    return None


def of_uri(uri: Any) -> str | None:
    """The path of a `file:` URI, or an absolute path as it is."""
    if not isinstance(uri, str) or not uri.startswith("file:"):
        return absolute(uri)
    path = unquote(uri.removeprefix("file:").removeprefix("//"))
    path = path.removeprefix("localhost")
    return absolute(path[1:] if DRIVE.match(path[1:]) else path)


def _split(path: Any) -> tuple[str, list[str]] | None:
    """The root of an absolute path and its directories; None for other paths."""
    clean = absolute(path)
    if clean is None:
        return None
    if clean.startswith("/"):
        return "/", [name for name in posixpath.normpath(clean).split("/") if name][:-1]
    drive, rest = ntpath.splitdrive(ntpath.normpath(clean))
    return drive + "\\", [name for name in rest.split("\\") if name][:-1]


def _shared(one: list[str], other: list[str], *, cased: bool) -> list[str]:
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs and (cased or mine.casefold() != theirs.casefold()):
            break
        length += 1
    return one[:length]
