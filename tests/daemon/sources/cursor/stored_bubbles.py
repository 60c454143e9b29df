"""Bubbles and tool calls in the form in which Cursor stores them."""

from __future__ import annotations

import json
from typing import Any

from sessiond.sourcekit.base import Event, Record
from sessiond.sources.cursor.tool_calls import tool_event

PNG = "iVBORw0KGgo" + "A" * 60


def answer(**fields: Any) -> dict[str, Any]:
    return {"type": 2, "bubbleId": "b1", **fields}


def prompt(**fields: Any) -> dict[str, Any]:
    return {"type": 1, "bubbleId": "b1", **fields}


def told(record: Record) -> list[tuple[str, str]]:
    return [(event.type, event.text) for event in record.events]


def call(**fields: Any) -> Event:
    return tool_event({"name": "grep", **fields}, "/t")


def command(**result: Any) -> Event:
    given = json.dumps({"command": "make"})
    return tool_event(
        {
            "name": "run_terminal_command_v2",
            "status": "completed",
            "params": given,
            "result": json.dumps(result),
        },
        "/t",
    )


def paragraph(*inside: Any) -> dict[str, Any]:
    return {"type": "paragraph", "children": list(inside)}


def word(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def lexical(*nodes: Any) -> dict[str, Any]:
    return {"root": {"type": "root", "children": list(nodes)}}
