"""Finds the thread of a rollout: from its first record, else from its file name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from sessiond.reading import tail
from sessiond.sourcekit.base import SessionSpec
from sessiond.sourcekit.values import as_dict, as_text

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
