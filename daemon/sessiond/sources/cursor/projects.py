"""The folder that a Cursor conversation is about, from the ways in which Cursor names it."""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from sessiond.sourcekit.files import small_json
from sessiond.sourcekit.values import as_text

_LARGEST_FILE = 64 << 10
_LONGEST_PATH = 32 << 10
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # a single letter is a drive
_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|\Z)")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_REMOTE = "vscode-remote"
_ON_DISK = frozenset({"file", _REMOTE})
_FILES = ("configPath", "workspace")
# An untitled workspace is a file of this name in Cursor's own directory.
_UNTITLED = re.compile(r"[\\/]workspace\.json\Z", re.IGNORECASE)
_HOMES = frozenset({"home", "users"})


def folder_of(identifier: Any) -> str | None:
    """The folder, or the `.code-workspace` file, of a workspace identifier, a URI or a path."""
    if isinstance(identifier, str):
        return _of_text(identifier)
    if not isinstance(identifier, dict):
        return None
    for name in ("uri", "folder", *_FILES):
        place = identifier.get(name)
        if place:
            found = _of_parts(place) if isinstance(place, dict) else _of_text(place)
            return None if found and name in _FILES and _UNTITLED.search(found) else found
    return _of_parts(identifier)


def folder_of_workspace(directory: str) -> str | None:
    """The folder that a directory below `workspaceStorage` belongs to."""
    facts = small_json(os.path.join(directory, "workspace.json"))
    return folder_of({name: facts.get(name) for name in ("folder", "workspace")})


def common_folder(paths: Iterable[str]) -> str | None:
    """The deepest directory that holds every file; not one that holds a whole machine's."""
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


def _of_text(text: Any) -> str | None:
    if not isinstance(text, str) or len(text) > _LONGEST_PATH:
        return None
    text = text.strip()
    scheme = _SCHEME.match(text)
    return _of_uri(scheme[1].lower(), text[scheme.end() :]) if scheme else _of_path(text)


def _of_uri(scheme: str, rest: str) -> str | None:
    if scheme not in _ON_DISK:
        return None
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority = ""
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
    return _of_decoded(scheme, unquote(authority), unquote(rest))


def _of_parts(parts: dict[str, Any]) -> str | None:
    """A URI as VS Code writes it into JSON; there the path is decoded already."""
    scheme = (as_text(parts.get("scheme")) or "file").lower()
    if scheme not in _ON_DISK:
        return None
    # For a remote folder Windows writes an `fsPath` with the wrong slashes.
    found = _of_path(parts.get("fsPath")) if scheme != _REMOTE else None
    path = as_text(parts.get("path"))
    if found is None and path:
        found = _of_decoded(scheme, as_text(parts.get("authority")) or "", path)
    return found or _of_text(parts.get("external"))


def _of_decoded(scheme: str, authority: str, path: str) -> str | None:
    if scheme == "file" and authority and authority.lower() != "localhost":
        return _of_path(f"//{authority}{path}")
    if path.startswith("/") and _DRIVE.match(path, 1):
        return _of_path(path[1].lower() + path[2:])  # as VS Code writes drives
    return _of_path(path)


def _of_path(path: Any) -> str | None:
    if not isinstance(path, str) or len(path) > _LONGEST_PATH or _UNPRINTABLE.search(path):
        return None
    if _DRIVE.match(path):
        clean = path.replace("/", "\\").rstrip("\\")
        return clean + "\\" if len(clean) == 2 else clean
    if path.startswith(("\\\\", "//")):
        clean = path.replace("/", "\\").strip("\\")
        return "\\\\" + clean if clean else None
    if path.startswith("/"):
        return path.rstrip("/") or "/"
    return None


def _split(path: Any) -> tuple[str, list[str]] | None:
    """The root of an absolute path and its directories; None for any other."""
    clean = _of_path(path)
    if clean is None:
        return None
    if clean.startswith("/"):
        return "/", [part for part in posixpath.normpath(clean).split("/") if part][:-1]
    drive, rest = ntpath.splitdrive(ntpath.normpath(clean))
    return drive + "\\", [part for part in rest.split("\\") if part][:-1]


def _shared(one: list[str], other: list[str], *, cased: bool) -> list[str]:
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs and (cased or mine.casefold() != theirs.casefold()):
            break
        length += 1
    return one[:length]
