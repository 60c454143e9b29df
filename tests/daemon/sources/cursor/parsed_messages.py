"""Messages of chats and lines of transcripts, parsed."""

from __future__ import annotations

from typing import Any

from sessiond.sourcekit.base import Record
from sessiond.sources.cursor.agent_messages import parse_message


def said(role: str, *content: Any, **more: Any) -> Record:
    """A message of a chat, with these blocks."""
    blocks = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
    return parse_message({"role": role, "content": blocks, **more})


def line(role: str, *content: Any, **more: Any) -> Record:
    """A line of a transcript, with these blocks."""
    return parse_message({"role": role, "message": {"content": [*content]}, **more})


def told(record: Record) -> list[tuple[str, str | None, str]]:
    return [(event.type, event.label, event.text) for event in record.events]


def call(name: str = "Shell", **more: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": "c1", "toolName": name, "args": {}, **more}


def result(**more: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": "c1", "toolName": "Shell", **more}
