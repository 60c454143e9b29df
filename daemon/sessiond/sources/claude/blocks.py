"""Reads the content blocks of a message: text, thinking, tool calls and results."""

from __future__ import annotations

import re
from typing import Any

from sessiond.sourcekit.base import Event, Result
from sessiond.sourcekit.content import NAMELESS, elements, result_text, searchable_input
from sessiond.sourcekit.values import as_dict, as_milliseconds, as_text, strings
from sessiond.sources.claude.describe import describe, hunks_of_result
from sessiond.sources.claude.repeats import Response

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_REFUSALS = (
    "The user doesn't want to proceed",
    "The user doesn't want to take this action",
    "Permission to use",
    "Permission for this",
    "Claude requested permissions",
    "User rejected",
    "User chose to stay in plan mode",
)
_INTERRUPTED = "[Request interrupted by user for tool use]"
_HEAD = 2000  # where the client puts its own text
_SAVED = "<persisted-output>"
_SAVED_TO = "saved to: "
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")


def joined_texts(content: Any, warnings: list[str]) -> str:
    texts = (block.get("text") for _, block in elements(content, "", warnings))
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def is_result(kind: Any) -> bool:
    return isinstance(kind, str) and kind.endswith("tool_result")


def assistant_event(
    block: dict[str, Any], pointer: str, response: Response, label: str | None
) -> Event | None:
    """The event of a block that the model wrote, unless an earlier line had it."""
    kind = block.get("type")
    if kind == "text":
        text = _trimmed(block.get("text"))
        if text and response.is_new("text", text):
            return Event("assistant", text, label=label)
        return None
    if kind == "thinking":
        text = _trimmed(block.get("thinking"))
        return Event("thinking", text) if text and response.is_new("thinking", text) else None
    if isinstance(kind, str) and kind in _CALLS:
        call_id = as_text(block.get("id"))
        if call_id is not None and not response.is_new("call", call_id):
            return None
        return tool_call(block.get("name"), call_id, block.get("input"), f"{pointer}/input")
    if kind == "image":
        return Event("assistant", "[image]", images=1)
    event = other_event(block)
    return event if event and response.is_new(event.label or "", event.text) else None


def tool_call(name: Any, call_id: str | None, given: Any, pointer: str) -> Event:
    tool = as_text(name)
    described = describe(tool, given)
    return Event(
        "tool_use",
        tool=tool,
        status="pending",
        summary=described.summary,
        input=searchable_input(given),
        call_id=call_id,
        pointer=pointer,
        files=described.files,
        kind=described.kind,
        edits=described.edits,
    )


def other_event(block: dict[str, Any]) -> Event | None:
    """The strings of a block of an unknown kind."""
    kind = as_text(block.get("type")) or "block"
    if kind == "redacted_thinking":
        return None
    text = "\n".join(strings(block, NAMELESS)).strip()
    return Event("system", text, label=kind) if text else None


def document_marker(block: dict[str, Any]) -> str:
    title = as_text(block.get("title")) or as_text(as_dict(block.get("source")).get("media_type"))
    return f"[document: {title}]" if title else "[document]"


def tool_result(
    block: dict[str, Any], pointer: str, call_id: str, details: Any, denial: Any
) -> Result:
    """`details` is the record's own copy of the result, `denial` the reason it was refused."""
    content = block.get("content")
    output, images = result_text(content)
    status = "ok"
    if denial:
        status = "denied"
    elif block.get("is_error") is True or _is_server_error(content):
        status = "denied" if _is_refusal(output) else "error"
    result = Result(call_id, output, status, images=images, pointer=f"{pointer}/content")
    if isinstance(details, dict):
        result.duration_ms = _duration(details)
        result.overflow = _file_name(details.get("persistedOutputPath"))
        result.hunks = hunks_of_result(details)
    if result.overflow is None and output.startswith(_SAVED):
        start = output.find(_SAVED_TO, 0, _HEAD)
        if start >= 0:
            start += len(_SAVED_TO)
            result.overflow = _file_name(output[start : start + 4096].partition("\n")[0])
    return result


def _is_server_error(content: Any) -> bool:
    if not isinstance(content, dict):
        return False
    kind = content.get("type")
    return "error_code" in content or (isinstance(kind, str) and kind.endswith("_error"))


def _is_refusal(output: str) -> bool:
    return output.startswith(_REFUSALS) or output.find(_INTERRUPTED, 0, _HEAD) >= 0


def _duration(details: dict[str, Any]) -> int | None:
    for name in ("durationMs", "totalDurationMs"):
        duration = as_milliseconds(details.get(name))
        if duration is not None:
            return duration
    seconds = details.get("durationSeconds")
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        return as_milliseconds(seconds * 1000)
    return None


def _file_name(path: Any) -> str | None:
    """The file name of a path from any system, if it is safe."""
    if not isinstance(path, str):
        return None
    name = path.strip().replace("\\", "/").rpartition("/")[2]
    return name if _SAFE_NAME.fullmatch(name) else None


def _trimmed(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
