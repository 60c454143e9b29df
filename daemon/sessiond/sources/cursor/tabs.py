"""Chats of the oldest versions: one value in a window's database has all its tabs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sessiond.engines.foreign import Foreign
from sessiond.engines.known_rows import GONE, KnownRows
from sessiond.sourcekit.base import Conversation, Item, SessionSpec
from sessiond.sourcekit.editors import folder_of_workspace
from sessiond.sourcekit.values import as_dict, as_text, as_time
from sessiond.sources.cursor import envelope
from sessiond.sources.cursor.changes import digest
from sessiond.sources.cursor.composers import unwrap

_CHATS = "workbench.panel.aichat.view.aichat.chatdata"
_TAB = "tab:"
_BY_WINDOW = 5


def tabs(foreign: Foreign, known: KnownRows, state: dict[str, Any]) -> Iterator[Conversation]:
    """Every tab with what changed in it."""
    rows = []
    if foreign.has_table("ItemTable"):
        rows = foreign.rows("SELECT value FROM ItemTable WHERE key = ?", (_CHATS,))
    now = [digest(value) for (value,) in rows]
    if now == state.get("chats", []):
        return
    present: set[str] = set()
    folder = folder_of_workspace(os.path.dirname(foreign.path))
    for (value,) in rows:
        listed = as_dict(unwrap(value)).get("tabs")
        for tab in listed if isinstance(listed, list) else ():
            tab_id = as_text(as_dict(tab).get("tabId"))
            if tab_id and isinstance(tab.get("bubbles"), list):
                present.add(tab_id)
                yield _tab(tab_id, tab, folder, known)
    yield from _closed(present, known)
    state["chats"] = now


def _tab(tab_id: str, tab: dict[str, Any], folder: str | None, known: KnownRows) -> Conversation:
    sent = as_time(tab.get("lastSendTime"))
    change = Conversation(
        SessionSpec(tab_id, title=as_text(tab.get("chatTitle"))),
        project=folder,
        project_rank=_BY_WINDOW,
        created_at=sent,  # its start is not recorded
        updated_at=sent,
    )
    before = known.under(f"{_TAB}{tab_id}:")
    for number, bubble in enumerate(tab["bubbles"], 1):
        bubble_id = (as_text(as_dict(bubble).get("id")) or f"bubble-{number}") if bubble else ""
        key = f"{_TAB}{tab_id}:{bubble_id}"
        if not isinstance(bubble, dict) or key in change.order:
            continue
        change.order.append(key)
        raw = envelope.pack(tab_id, bubble, bubble_id=f"{tab_id}-{bubble_id}")
        item = Item(key, number, digest(raw), raw)
        if key in before and before[key].digest == item.digest:
            if before[key].place != number:
                change.moved.append((key, number))
            continue
        item.record = envelope.read({"bubble": bubble, "bubbleId": f"{tab_id}-{bubble_id}"})
        change.items.append(item)
    change.removed = [key for key in before if key not in set(change.order)]
    return change


def _closed(present: set[str], known: KnownRows) -> Iterator[Conversation]:
    """Tabs that no longer exist."""
    gone: dict[str, list[str]] = {}
    for key, place in known.places(_TAB):
        tab_id = key.split(":", 2)[1]
        if tab_id not in present and place != GONE:
            gone.setdefault(tab_id, []).append(key)
    for tab_id, keys in gone.items():
        yield Conversation(SessionSpec(tab_id), removed=keys, gone=True)
