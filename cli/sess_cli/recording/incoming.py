"""What `sess record` reads: entries as the transcript has them, or messages of a chat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

# At least one of these must be there.
_NEEDED = {
    "user": ("content", "images"), "assistant": ("content",), "system_prompt": ("content",),
    "tool_call": ("name",), "tool_result": ("output", "error", "denied"),
    "plan_update": ("plan_status",), "todo_snapshot": ("todos",), "mode_change": ("mode",),
    "compact": ("summary",), "subagent_start": ("subagent_name",),
    "subagent_result": ("subagent_name",), "subagent_async": ("subagent_name",),
}  # fmt: skip
_ROLES = {"user": "user", "assistant": "assistant", "system": "system_prompt"}
_ROLES["developer"] = "system_prompt"


class Refused(ValueError):
    """A line that is not recorded; the message says why."""


class Incoming:
    """Turns lines into entries; remembers the names of calls, which chats do not repeat."""

    def __init__(self) -> None:
        self._called: dict[str, str] = {}

    def entries(self, line: bytes) -> list[dict[str, Any]]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Refused("not JSON") from error
        if not isinstance(value, dict):
            raise Refused("not a JSON object")
        if isinstance(value.get("type"), str) and value["type"]:
            return [self._entry(value)]
        if isinstance(value.get("role"), str):
            return [*self._message(value)]
        raise Refused('neither "type" nor "role"')

    def _entry(self, value: dict[str, Any]) -> dict[str, Any]:
        kind = value["type"]
        if kind == "session_start":
            raise Refused("session_start is written by sess; use --project and --model")
        needed = _NEEDED.get(kind, ())
        if needed and not any(name in value for name in needed):
            raise Refused(f'{kind} without "{needed[0]}"')
        if kind == "tool_result" and not isinstance(value.get("output", ""), str):
            value = value | {"output": json.dumps(value["output"], ensure_ascii=False)}
        return value

    def _message(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A message as chat completions have it, tool calls included."""
        role, when = value["role"], {"timestamp": value.get("timestamp")}
        text, images = _content(value.get("content"))
        if role == "tool":
            call = str(value.get("tool_call_id") or "")
            name = value.get("name") or self._called.get(call, "")
            said = {"name": name, "output": text, "tool_call_id": call}
            yield {"type": "tool_result", **said, **when}
            return
        if role not in _ROLES:
            raise Refused(f'unknown role "{role}"')
        if text or images:
            yield {"type": _ROLES[role], "content": text, "images": images, **when}
        for call in value.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                raise Refused("a tool call without a function")
            name, call_id = str(function.get("name") or ""), str(call.get("id") or "")
            self._called[call_id] = name
            said = {"name": name, "args": function.get("arguments"), "tool_call_id": call_id}
            yield {"type": "tool_call", **said, **when}


def _content(content: Any) -> tuple[str, list[dict[str, str]]]:
    """The text and the images of a message's content, which may be in parts."""
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), []
    texts, images = [], []
    for part in content:
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        address = part.get("image_url")
        url = address.get("url") if isinstance(address, dict) else address
        if isinstance(url, str) and url.startswith("data:"):
            media, _, data = url.removeprefix("data:").partition(";base64,")
            images.append({"media_type": media, "data": data})
    return "\n".join(texts), images
