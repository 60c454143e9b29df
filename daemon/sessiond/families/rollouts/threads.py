"""Which thread a rollout is of, and the name that a person gave it."""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from sessiond.reading import tail
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import Conversation, Item, SessionSpec
from sessiond.sourcekit.disk import KeptFile
from sessiond.sourcekit.values import as_dict, as_text

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign, KnownRows


_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAME = re.compile(rf"({_ID})(?:_({_ID}))?\.jsonl\Z", re.IGNORECASE)
_HEAD = 64 << 10
# The first line may be longer than the head of the file; its long fields come last.
_LONG = re.compile(rb',\s*"(?:base_instructions|instructions|dynamic_tools)"\s*:')


@dataclass(slots=True, frozen=True)
class Meta:
    """What a `session_meta` records about its thread."""

    thread: str | None
    parent: str | None = None  # subagents only
    is_subagent: bool = False
    nickname: str | None = None
    role: str | None = None
    inherits: bool = False  # it continues another thread
    provider: str | None = None  # of models


def read_meta(payload: dict[str, Any]) -> Meta:
    source = payload.get("source")
    below = source.get("subagent") if isinstance(source, dict) else None
    spawn = as_dict(as_dict(below).get("thread_spawn"))
    forked_from = as_text(payload.get("forked_from_id"))
    parent = as_text(spawn.get("parent_thread_id")) or as_text(payload.get("parent_thread_id"))
    other = as_text(below) or as_text(as_dict(below).get("other"))
    thread = as_text(payload.get("id")) or as_text(payload.get("session_id"))
    return Meta(
        thread,
        parent=parent if parent != thread else None,
        is_subagent=bool(below) or parent is not None,
        nickname=as_text(spawn.get("agent_nickname")) or as_text(payload.get("agent_nickname")),
        role=as_text(spawn.get("agent_role")) or as_text(payload.get("agent_role")) or other,
        inherits=bool(forked_from or parent or payload.get("history_base")),
        provider=as_text(payload.get("model_provider")),
    )


def first_record(head: bytes) -> dict[str, Any]:
    line = head.split(b"\n", 1)[0]
    for text in (line, *_shortened(line)):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        return value if isinstance(value, dict) else {}
    return {}


def _shortened(line: bytes) -> list[bytes]:
    cut = _LONG.search(line)
    return [line[: cut.start()] + end for end in (b"}}", b"}")] if cut else []


def is_rollout(head: bytes) -> bool:
    """Checks the first record: an envelope, or the bare metadata of the first releases."""
    first = first_record(head)
    if first.get("type") in ("session_meta", "response_item", "event_msg", "turn_context"):
        return isinstance(first.get("payload"), dict)
    return "type" not in first and {"id", "timestamp", "instructions"} <= first.keys()


def is_rollout_file(path: str) -> bool:
    try:
        descriptor, _ = tail.open_log(path)
    except (OSError, tail.Unreadable):
        return False
    try:
        return is_rollout(tail.read_at(descriptor, _HEAD, 0))
    except OSError:
        return False
    finally:
        os.close(descriptor)


def meta_of(head: bytes) -> Meta:
    first = first_record(head)
    if first.get("type") == "session_meta":
        return read_meta(as_dict(first.get("payload")))
    return read_meta(first) if "type" not in first else Meta(None)


def identify(
    path: str, head: bytes, names: Mapping[str, str], resume: tuple[str, ...]
) -> SessionSpec:
    meta = meta_of(head)
    name = os.path.basename(path)
    named = _NAME.search(name)
    thread = meta.thread or (named[1] if named else name.removesuffix(".jsonl"))
    # A reverted thread continues in a new file, from a point in the first.
    reverted = named[2] if named else None
    if meta.is_subagent:
        return SessionSpec(
            reverted or thread,
            kind="subagent",
            parent=meta.parent,
            agent_type=meta.role,
            title=names.get(thread) or meta.nickname,
        )
    return SessionSpec(
        reverted or thread,
        title=names.get(thread),
        resume=(*resume, thread) if resume else (),
    )


# -- names: in a list beside the sessions, now in a database

LIST = "session_index.jsonl"
_DATABASE = re.compile(r"state_(\d{1,9})\.sqlite")
_LARGEST = 4 << 20
_THREAD = "thread/"  # before the key of a known name


class ThreadNames:
    """Looks names up when a rollout is read; keeps them until their file changes."""

    def __init__(self) -> None:
        self._listed = KeptFile(_listed, _LARGEST)
        self._stored: dict[str, tuple[tuple[object, ...], dict[str, str]]] = {}

    def of(self, home: str, folders: Sequence[str]) -> Mapping[str, str]:
        """Names by thread; `folders` may hold a database, whose names are the newer ones."""
        listed = self._listed.of(os.path.join(home, LIST))
        newest = next(iter(databases(folders)), None)
        return ChainMap(self._in_database(newest), listed) if newest else listed

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
        from sessiond.engines.steps import hash64  # when something changed

        before = known.under(_THREAD)
        for thread, name in stored(foreign):
            item = Item(_THREAD + thread, digest=hash64(name.encode("utf-8", "replace")))
            old = before.get(item.key)
            if old is None or old.digest != item.digest:
                yield Conversation(SessionSpec(thread, title=name), items=[item])


def databases(folders: Sequence[str]) -> list[str]:
    """The databases in these folders, the newest schema first."""
    numbered = [
        (int(match[1]), path)
        for folder in folders
        for path in disk.below(folder, "state_*.sqlite")
        if (match := _DATABASE.fullmatch(os.path.basename(path)))
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


def _listed(data: bytes) -> dict[str, str]:
    """The list is only appended to; the last name of a thread counts."""
    names: dict[str, str] = {}
    for line in data.split(b"\n"):
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
