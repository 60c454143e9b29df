"""Editors of the VS Code family: where they keep user data, and which folder a window has open."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import unquote

from sessiond.sourcekit.files import Folders, small_json
from sessiond.sourcekit.folders import DRIVE, LONGEST_PATH, absolute
from sessiond.sourcekit.values import as_text

_LARGEST_FILE = 64 << 10
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # a single letter is a drive
_REMOTE = "vscode-remote"
_ON_DISK = frozenset({"file", _REMOTE})
_FILES = ("configPath", "workspace")
# An untitled workspace is a file of this name in the editor's directory.
_UNTITLED = re.compile(r"[\\/]workspace\.json\Z", re.IGNORECASE)
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "VSCodium - Insiders")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".vscodium-server")


def user_folders(folders: Folders) -> list[str]:
    """Where VS Code and its builds keep user data, here and for remote windows."""
    data, home = folders.application_data(), folders.home()
    local = [os.path.join(data, name, "User") for name in _EDITORS]
    return local + [os.path.join(home, name, "data", "User") for name in _SERVERS]


def folder_of(identifier: Any) -> str | None:
    """The folder, or the `.code-workspace` file, of a workspace identifier, a URI or a path."""
    if isinstance(identifier, str):
        return _of_text(identifier)
    if not isinstance(identifier, dict):
        return None
    for name in ("uri", "folder", *_FILES):
        place = identifier.get(name)
        if place:
            found = _of_components(place) if isinstance(place, dict) else _of_text(place)
            return None if found and name in _FILES and _UNTITLED.search(found) else found
    return _of_components(identifier)


def folder_of_workspace(directory: str) -> str | None:
    """The folder that a directory below `workspaceStorage` belongs to."""
    facts = small_json(os.path.join(directory, "workspace.json"))
    return folder_of({name: facts.get(name) for name in ("folder", "workspace")})


def _of_text(text: Any) -> str | None:
    if not isinstance(text, str) or len(text) > LONGEST_PATH:
        return None
    text = text.strip()
    scheme = _SCHEME.match(text)
    return _of_uri(scheme[1].lower(), text[scheme.end() :]) if scheme else absolute(text)


def _of_uri(scheme: str, rest: str) -> str | None:
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
    found = absolute(uri.get("fsPath")) if scheme != _REMOTE else None
    path = as_text(uri.get("path"))
    if found is None and path:
        found = _of_decoded(scheme, as_text(uri.get("authority")) or "", path)
    return found or _of_text(uri.get("external"))


def _of_decoded(scheme: str, authority: str, path: str) -> str | None:
    if scheme == "file" and authority and authority.lower() != "localhost":
        return absolute(f"//{authority}{path}")
    if path.startswith("/") and DRIVE.match(path, 1):
        return absolute(path[1].lower() + path[2:])  # as VS Code writes drives
    return absolute(path)
