"""Sessions of versions without a database: a file per session, message and part."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Any

from sess_common.decode import decode
from sessiond.families.opencode.messages import read_message
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import Conversation, Item, NotReady, SessionSpec
from sessiond.sourcekit.files import small_file, small_json
from sessiond.sourcekit.values import as_dict, as_text, as_time

_LARGEST = 64 << 20
_RECENT = 24 * 3600  # seconds in which a session may still be written
_INFO, _JSON = "info", ".json"
_TREE_RANK = 1  # databases come first: they were made from the tree
_BY_SESSION = 5
_NAME = re.compile(r"[\w-]{1,200}")  # an id that is safe in a path


def session(path: str, data: bytes, program: str) -> Conversation:
    """A session with all its messages and their parts."""
    try:
        facts, _ = decode(data)
    except ValueError:
        raise NotReady("is not complete JSON") from None
    name = as_text(as_dict(facts).get("id"))
    if name is None or not _NAME.fullmatch(name):
        raise NotReady("is not a session")
    tree = _Tree(path)
    parent, times = as_text(facts.get("parentID")), as_dict(facts.get("time"))
    revert = as_text(as_dict(facts.get("revert")).get("messageID"))
    items = []
    for message in tree.messages(name):
        if revert and message["info"].get("id") == revert:
            break
        record = read_message(message)
        items.append(Item(record.native_id or "", value=message, record=record))
    items.sort(key=lambda item: ((item.record.ts if item.record else None) or 0, item.key))
    return Conversation(
        SessionSpec(
            name,
            kind="subagent" if parent else "main",
            parent=parent,
            title=as_text(facts.get("title")),
            fallback=_TREE_RANK,
            resume=() if parent else (program, "--session", name),
        ),
        items=items,
        project=as_text(facts.get("directory")),
        project_rank=_BY_SESSION,
        created_at=as_time(times.get("created")),
        updated_at=as_time(times.get("updated")),
    )


def written_later(path: str) -> list[str]:
    """Files and folders that may change after a session's file."""
    tree = _Tree(path)
    name = _stem(path)
    folder = tree.message_folder(name)
    try:
        fresh = time.time() - max(disk.lstat(path).st_mtime, disk.lstat(folder).st_mtime) < _RECENT
    except OSError:
        return [folder]
    if not fresh:
        return [folder]
    messages = _files(folder)
    parts = [tree.part_folder(name, _stem(message)) for message in messages]
    return [folder, *parts, *messages[-1:], *(_files(parts[-1]) if parts else ())]


class _Tree:
    """Where the messages and parts of a session are.

    `storage/session/PROJECT/SESSION.json` has them in `storage/message/SESSION/` and
    `storage/part/MESSAGE/`; the older `storage/session/info/SESSION.json` in
    `storage/session/message/SESSION/` and `storage/session/part/SESSION/MESSAGE/`.
    """

    def __init__(self, path: str) -> None:
        folder = os.path.dirname(path)
        self._nested = os.path.basename(folder) == _INFO
        self._base = os.path.dirname(folder if self._nested else os.path.dirname(folder))
        self._loose: dict[str, list[dict[str, Any]]] | None = None

    def message_folder(self, name: str) -> str:
        return os.path.join(self._base, "message", name)

    def part_folder(self, name: str, message: str) -> str:
        inner = (name, message) if self._nested else (message,)
        return os.path.join(self._base, "part", *inner)

    def messages(self, name: str) -> Iterator[dict[str, Any]]:
        for file in _files(self.message_folder(name)):
            info = {"id": _stem(file), **_object(file)}
            message = str(info["id"])
            folder = self.part_folder(name, message if _NAME.fullmatch(message) else _stem(file))
            parts = [_object(one) for one in _files(folder)]
            yield {"info": info, "parts": parts or self._loose_parts(message)}

    def _loose_parts(self, message: str) -> list[dict[str, Any]]:
        """Parts that are not in a folder of their message."""
        if self._loose is None:
            self._loose = {}
            for file in _files(os.path.join(self._base, "part")):
                part = _object(file)
                self._loose.setdefault(str(part.get("messageID")), []).append(part)
        return self._loose.get(message, [])


def _object(file: str) -> dict[str, Any]:
    """What is not JSON, or not yet, is kept as text."""
    value = small_json(file, _LARGEST)
    return value or {"unreadable": small_file(file, _LARGEST).decode("utf-8", "replace")}


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(_JSON)


def _files(folder: str) -> list[str]:
    try:
        names = sorted(name for name in disk.names(folder) if name.endswith(_JSON))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names]
