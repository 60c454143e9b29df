"""Reads a chat of cursor-agent as one conversation: its root lists messages by hash."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sessiond.engines.foreign import Foreign
from sessiond.engines.known_rows import KnownRows
from sessiond.engines.slices import hash64
from sessiond.sourcekit.base import Conversation, Item, SessionSpec
from sessiond.sources.cursor import envelope
from sessiond.sources.cursor.storedb import (
    folder_of_root,
    message_ids,
    read_chat,
    read_message,
    read_meta,
)

_MESSAGE = "message:"
_BY_META = 5
META = "meta.json"


def chat(foreign: Foreign, known: KnownRows, state: dict[str, Any]) -> Iterator[Conversation]:
    """The chat with its new messages."""
    facts = read_chat(foreign)
    if facts is None:
        return
    folder = os.path.dirname(foreign.path)
    meta = read_meta(os.path.join(folder, META))
    agent_id = facts.agent_id or os.path.basename(folder)
    now = [facts.root, facts.title, meta.cwd, meta.title]
    if now == state.get("chat"):
        return
    created = facts.created_at or meta.created_at
    change = Conversation(
        SessionSpec(
            agent_id,
            title=meta.title or facts.title,
            fallback=1,
            resume=("cursor-agent", "--resume", agent_id),
        ),
        project=meta.cwd or (folder_of_root(foreign, facts.root) if facts.root else None),
        project_rank=_BY_META,
        mode=facts.mode,
        model=facts.model,
        created_at=created,
        updated_at=meta.updated_at or created,
    )
    before = known.under(_MESSAGE)
    seen = {key.split(":")[1] for key in before}
    times: Counter[str] = Counter()
    listed = []
    for blob_id in message_ids(foreign, facts.root, seen) if facts.root else ():
        times[blob_id] += 1
        listed.append(f"{_MESSAGE}{blob_id}:{times[blob_id]}")
    change.order = _kept(sorted(before, key=lambda key: before[key].place), listed)
    for place, key in enumerate(change.order):
        item = None
        if key not in before or before[key].is_stale:
            item = _item(foreign, agent_id, key, place)
        if item is not None and (item.record is not None or key not in before):
            change.items.append(item)
        elif before[key].place != place:
            change.moved.append((key, place))
    yield change
    state["chat"] = now


def _kept(before: list[str], listed: list[str]) -> list[str]:
    """Keep messages that the agent summarized or rewound, after those that preceded them."""
    followers: dict[str, list[str]] = {"": []}
    current = set(listed)
    anchor = ""
    for key in before:
        if key in current:
            anchor = key
        else:
            followers.setdefault(anchor, []).append(key)
    return followers[""] + [one for key in listed for one in (key, *followers.get(key, ()))]


def _item(foreign: Foreign, agent_id: str, key: str, place: int) -> Item:
    blob_id = key.split(":")[1]
    message = read_message(foreign, blob_id)
    native_id = f"{agent_id}:{key.removeprefix(_MESSAGE)}"
    item = Item(key, place, hash64(blob_id.encode()))
    if message is not None:
        item.raw = envelope.pack(agent_id, message, bubble_id=native_id)
        item.record = envelope.read({"bubble": message, "bubbleId": native_id})
    return item
