"""Conversations whose bubbles are all in one value, not in rows of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiond.sourcekit.base import Conversation, Item
from sessiond.sourcekit.known_rows import KnownRow
from sessiond.sources.cursor import envelope
from sessiond.sources.cursor.changes import digest
from sessiond.sources.cursor.composers import Inline

_PLACE = 0  # they have no rowids


def add_inline(
    change: Conversation, inline: Mapping[str, Inline], known: Mapping[str, KnownRow]
) -> None:
    """Add the bubbles that are new or changed, by their keys."""
    composer_id = change.spec.native_id
    for key, (bubble_id, bubble, tool) in inline.items():
        given = None if bubble.get("bubbleId") == bubble_id else bubble_id
        raw = envelope.pack(composer_id, bubble, bubble_id=given, tool=tool)
        item = Item(key, _PLACE, digest(raw), raw)
        before = known.get(key)
        if before is not None and before.digest == item.digest:
            if before.place != _PLACE:
                change.moved.append((key, _PLACE))
            continue
        value: dict[str, Any] = {"bubble": bubble, "bubbleId": bubble_id, "tool": tool}
        item.record = envelope.read(value)
        change.items.append(item)
