"""`session.json`: the list of recorded sessions, by project, with their titles."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from sess_cli.recording import private_files

_NAME, _LOCK = "session.json", ".session.json.lock"
_TITLE = 80
UNTITLED = "New session"
_BY_USER = "title_user_set"


def title_from(prompt: str) -> str:
    line = prompt.replace("\r", "\n").partition("\n")[0].strip()
    if not line:
        return UNTITLED
    return line if len(line) <= _TITLE else line[:_TITLE] + "…"


def add(folder: str, session: str, meta: dict[str, str]) -> None:
    """List a session, unless it is listed already."""

    def change(sessions: dict[str, Any]) -> bool:
        if any(True for _ in _metas(sessions, session)):
            return False
        listed = sessions.setdefault(meta["project"], [])
        if not isinstance(listed, list):
            return False
        listed.append(meta)
        return True

    _change(folder, change)


def entitle(folder: str, session: str, title: str) -> None:
    """Name a session after its first prompt, unless it has a name."""

    def change(sessions: dict[str, Any]) -> bool:
        unnamed = [one for one in _metas(sessions, session) if not one.get("title")]
        for one in unnamed:
            one["title"] = title
        return bool(unnamed)

    _change(folder, change)


def rename(folder: str, session: str, title: str, by_user: bool) -> None:
    """Give a session another name; one that a person gave is not replaced by a program's."""

    def change(sessions: dict[str, Any]) -> bool:
        free = [one for one in _metas(sessions, session) if by_user or not one.get(_BY_USER)]
        for one in free:
            one["title"] = title
            if by_user:
                one[_BY_USER] = True
        return bool(free)

    _change(folder, change)


def path_in(folder: str) -> str:
    return os.path.join(folder, _NAME)


def without(raw: bytes, session: str) -> bytes | None:
    """A list without a session; None if it is not in there, or if this is no such list."""
    try:
        found = json.loads(raw)
    except ValueError:
        return None
    sessions = found.get("sessions") if isinstance(found, dict) else None
    if not isinstance(sessions, dict):
        return None
    gone = [*_metas(sessions, session)]
    if not gone:
        return None
    for listed in sessions.values():
        if isinstance(listed, list):
            listed[:] = [one for one in listed if one not in gone]
    return json.dumps(found, indent=2, ensure_ascii=False).encode("utf-8", "replace")


def _metas(sessions: dict[str, Any], session: str) -> Iterator[dict[str, Any]]:
    for listed in sessions.values():
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("uuid") == session:
                yield one


def _change(folder: str, change: Callable[[dict[str, Any]], bool]) -> None:
    """Read, change and replace the list, one process at a time. A damaged list is left alone."""
    path = path_in(folder)
    fd = private_files.open_to_append(os.path.join(folder, _LOCK))
    try:
        with private_files.locked(fd):
            found: Any = {}
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                found = json.loads(file.read() or b"{}")
            sessions = found.setdefault("sessions", {}) if isinstance(found, dict) else None
            if isinstance(sessions, dict) and change(sessions):
                text = json.dumps(found, indent=2, ensure_ascii=False)
                private_files.replace(path, text.encode("utf-8", "replace"))
    finally:
        os.close(fd)
