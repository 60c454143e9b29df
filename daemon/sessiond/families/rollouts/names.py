"""Names that people gave to threads: in a list beside the sessions, now in a database."""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from sessiond.sourcekit import disk
from sessiond.sourcekit.base import Conversation, Item, SessionSpec
from sessiond.sourcekit.files import small_file
from sessiond.sourcekit.values import as_text

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign
    from sessiond.sourcekit.known_rows import KnownRows

LIST = "session_index.jsonl"
_DATABASE = re.compile(r"state_(\d{1,9})\.sqlite")
_LARGEST = 4 << 20
_THREAD = "thread/"  # before the key of a known name
_Mark = tuple[object, ...]


class ThreadNames:
    """Looks names up when a rollout is read; keeps them until their file changes."""

    def __init__(self) -> None:
        self._listed: dict[str, tuple[_Mark, dict[str, str]]] = {}
        self._stored: dict[str, tuple[_Mark, dict[str, str]]] = {}

    def of(self, home: str, folders: Sequence[str]) -> Mapping[str, str]:
        """Names by thread; `folders` may hold a database, whose names are the newer ones."""
        listed = self._in_list(os.path.join(home, LIST))
        newest = next(iter(databases(folders)), None)
        return ChainMap(self._in_database(newest), listed) if newest else listed

    def _in_list(self, path: str) -> dict[str, str]:
        try:
            found = disk.lstat(path)
        except OSError:
            return {}
        mark = found.st_mtime_ns, found.st_size
        kept = self._listed.get(path)
        if kept is None or kept[0] != mark:
            kept = self._listed[path] = mark, _listed(path)
        return kept[1]

    def _in_database(self, path: str) -> dict[str, str]:
        from sessiond.sourcekit import foreign  # few have a database

        mark = foreign.fingerprint(path)
        kept = self._stored.get(path)
        if kept is None or kept[0] != mark:
            try:
                with foreign.Foreign(path) as database:
                    kept = self._stored[path] = mark, dict(stored(database))
            except (foreign.Changed, foreign.ForeignError):  # the next read finds them
                return kept[1] if kept else {}
        return kept[1]


class Names:
    """Reports names that changed after their rollout was last written."""

    def conversations(
        self,
        foreign: Foreign,
        known: KnownRows,
        state: dict[str, Any],  # noqa: ARG002 - every name is compared
    ) -> Iterator[Conversation]:
        from sessiond.engines.slices import hash64  # when something changed

        before = known.under(_THREAD)
        for thread, name in stored(foreign):
            item = Item(_THREAD + thread, digest=hash64(name.encode("utf-8", "replace")))
            old = before.get(item.key)
            if old is None or old.digest != item.digest:
                yield Conversation(SessionSpec(thread, title=name), items=[item])


def databases(folders: Sequence[str]) -> list[str]:
    """The databases in these folders, the newest schema first."""
    numbered = [
        (int(found[1]), path)
        for folder in folders
        for path in disk.below(folder, "state_*.sqlite")
        if (found := _DATABASE.fullmatch(os.path.basename(path)))
    ]
    return [path for _, path in sorted(numbered, reverse=True)]


def is_database(name: str) -> bool:
    return _DATABASE.fullmatch(name) is not None


def stored(foreign: Foreign) -> Iterator[tuple[str, str]]:
    """(thread, name) pairs of a database. Unnamed threads have their first prompt as a title."""
    columns = {name for _, name, *_ in foreign.rows("PRAGMA table_info(threads)")}
    if "name" in columns:
        given, named = "name", "name <> ''"
    elif {"title", "first_user_message"} <= columns:
        given, named = "title", "title <> '' AND trim(title) <> trim(first_user_message)"
    else:
        return
    for thread, name in foreign.rows(f"SELECT id, {given} FROM threads WHERE {named}"):
        if as_text(thread) and as_text(name):
            yield thread, _line(name)


def _listed(path: str) -> dict[str, str]:
    """The list is only appended to; the last name of a thread counts."""
    names: dict[str, str] = {}
    for line in small_file(path, _LARGEST).split(b"\n"):
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(entry, dict):
            thread, name = as_text(entry.get("id")), as_text(entry.get("thread_name"))
            if thread and name:
                names[thread] = _line(name)
    return names


def _line(name: str) -> str:
    return " ".join(name.split())
