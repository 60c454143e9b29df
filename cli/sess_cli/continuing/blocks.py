"""Messages in the form of Anthropic's Messages API: blocks, and roles that take turns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sess_cli.continuing.messages import Message

_NOT_IN_IDS = re.compile(r"[^0-9A-Za-z_-]")
_NOT_SHOWN = "[what came before is not shown]"


def as_blocks(messages: list[Message]) -> Iterator[dict[str, Any]]:
    """The first message is a user's, and neighbours have different roles."""
    ids: dict[str, str] = {}
    role, blocks = "user", list[dict[str, Any]]()
    for one in messages:
        says = "assistant" if one.role == "assistant" else "user"
        if says != role:
            yield {"role": role, "content": blocks or [_text(_NOT_SHOWN)]}
            role, blocks = says, []
        blocks += _blocks(one, ids)
    if blocks:
        yield {"role": role, "content": blocks}


def _blocks(one: Message, ids: dict[str, str]) -> Iterator[dict[str, Any]]:
    if one.role == "tool" and one.call is not None:
        content = [_text(one.text)] if one.text.strip() else []
        result = {"type": "tool_result", "tool_use_id": ids[one.call.id], "content": content}
        yield {**result, "is_error": True} if one.failed else result
        return
    if one.text.strip():
        yield _text(one.text)
    for image in one.images:
        source = {"type": "base64", "media_type": image.media, "data": image.data}
        yield {"type": "image", "source": source}
    for call in one.calls:
        name = _NOT_IN_IDS.sub("_", call.id)
        taken = set(ids.values())
        ids[call.id] = name if name not in taken else f"{name}_{len(taken)}"
        given = json.loads(call.arguments)
        yield {"type": "tool_use", "id": ids[call.id], "name": call.tool, "input": given}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
