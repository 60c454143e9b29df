"""Folders as agents write them, on any system, and as editors of the VS Code family keep them."""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from sessiond.sourcekit import disk
from sessiond.sourcekit.disk import Folders, small_json
from sessiond.sourcekit.values import as_text

LONGEST_PATH = 32 << 10
DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|\Z)")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_HOMES = frozenset({"home", "users"})
_NOT_CODED = re.compile(r"[^A-Za-z0-9]")
_LONGEST_CODE = 200  # longer ones end in a hash instead
_MOST_LISTED = 1000  # directories that one search may list
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # a single letter is a drive
_REMOTE = "vscode-remote"
_ON_DISK = frozenset({"file", _REMOTE})
_FILES = ("configPath", "workspace")
# An untitled workspace is a file of this name in the editor's directory.
_UNTITLED = re.compile(r"[\\/]workspace\.json\Z", re.IGNORECASE)
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "VSCodium - Insiders", "Positron")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".vscodium-server")


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
        projects = {path for path in known if _is_coded(path, self.code)}
        projects |= set(_on_disk(self.code))
        return projects.pop() if len(projects) == 1 else None


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
    pending = [(start, rest)]
    for _ in range(_MOST_LISTED):
        if not pending:
            return
        folder, rest = pending.pop()
        for entry in _entries(folder):
            name = coded(entry.name)
            if rest == name and entry.is_dir():
                yield entry.path
            elif rest.startswith(name + "-") and entry.is_dir():
                pending.append((entry.path, rest[len(name) + 1 :]))


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
        split = _split_path(path)
        if split is None:
            continue
        if common is None:
            anchor, common = split
        elif split[0].casefold() != anchor.casefold():
            return None
        else:
            common = _shared_start(common, split[1], cased=anchor == "/")
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


def _split_path(path: Any) -> tuple[str, list[str]] | None:
    """The root of an absolute path and its directories; None for other paths."""
    clean = absolute(path)
    if clean is None:
        return None
    if clean.startswith("/"):
        return "/", [name for name in posixpath.normpath(clean).split("/") if name][:-1]
    drive, rest = ntpath.splitdrive(ntpath.normpath(clean))
    return drive + "\\", [name for name in rest.split("\\") if name][:-1]


def _shared_start(one: list[str], other: list[str], *, cased: bool) -> list[str]:
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs and (cased or mine.casefold() != theirs.casefold()):
            break
        length += 1
    return one[:length]


def user_folders(folders: Folders) -> list[str]:
    """Where VS Code and its builds keep user data, here and for remote windows."""
    data, home = folders.application_data(), folders.home()
    local = [os.path.join(data, name, "User") for name in _EDITORS]
    return local + [os.path.join(home, name, "data", "User") for name in _SERVERS]


def folder_of_window(identifier: Any) -> str | None:
    """The folder, or the `.code-workspace` file, of a workspace identifier, a URI or a path."""
    if isinstance(identifier, str):
        return _folder_of_text(identifier)
    if not isinstance(identifier, dict):
        return None
    for name in ("uri", "folder", *_FILES):
        place = identifier.get(name)
        if place:
            folder = _of_components(place) if isinstance(place, dict) else _folder_of_text(place)
            return None if folder and name in _FILES and _UNTITLED.search(folder) else folder
    return _of_components(identifier)


def folder_of_workspace(directory: str) -> str | None:
    """The folder that a directory below `workspaceStorage` belongs to."""
    facts = small_json(os.path.join(directory, "workspace.json"))
    return folder_of_window({name: facts.get(name) for name in ("folder", "workspace")})


def _folder_of_text(text: Any) -> str | None:
    if not isinstance(text, str) or len(text) > LONGEST_PATH:
        return None
    text = text.strip()
    scheme = _SCHEME.match(text)
    return _folder_of_uri(scheme[1].lower(), text[scheme.end() :]) if scheme else absolute(text)


def _folder_of_uri(scheme: str, rest: str) -> str | None:
    if scheme not in _ON_DISK:
        return None
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority = ""
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
    return _of_decoded(scheme, unquote(authority), unquote(rest))


def _of_components(uri: dict[str, Any]) -> str | None:
    """A URI as VS Code writes it in JSON, with a decoded path."""
    scheme = (as_text(uri.get("scheme")) or "file").lower()
    if scheme not in _ON_DISK:
        return None
    # For a remote folder, Windows writes an `fsPath` with wrong slashes.
    folder = absolute(uri.get("fsPath")) if scheme != _REMOTE else None
    path = as_text(uri.get("path"))
    if folder is None and path:
        folder = _of_decoded(scheme, as_text(uri.get("authority")) or "", path)
    return folder or _folder_of_text(uri.get("external"))


def _of_decoded(scheme: str, authority: str, path: str) -> str | None:
    if scheme == "file" and authority and authority.lower() != "localhost":
        return absolute(f"//{authority}{path}")
    if path.startswith("/") and DRIVE.match(path, 1):
        return absolute(path[1].lower() + path[2:])  # as VS Code writes drives
    return absolute(path)
