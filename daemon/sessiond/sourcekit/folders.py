"""Paths of folders as agents write them, on any system."""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Iterable
from typing import Any

LONGEST_PATH = 32 << 10
DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|\Z)")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_HOMES = frozenset({"home", "users"})


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
