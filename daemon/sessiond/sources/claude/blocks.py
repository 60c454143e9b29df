"""Reads the content blocks of a message: text, thinking, tool calls and results."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

from sessiond.sourcekit.base import Event, Result
from sessiond.sourcekit.toolbox import event_of
from sessiond.sourcekit.values import (
    NAMELESS,
    as_dict,
    as_milliseconds,
    as_text,
    content_blocks,
    result_text,
    strings,
)
from sessiond.sources.claude.calls import describe, hunks_of_result

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
    texts = (block.get("text") for _, block in content_blocks(content, "", warnings))
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
    return event_of(describe(tool, given), tool, given, call_id, pointer)


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


# -- what a file repeats, from record to record and from run to run
# One response spans several lines that may repeat its earlier blocks, and titles and other notes
# are appended repeatedly. The state is small, bounded JSON.

_MESSAGES = 4  # responses of a session and its sidechains that may be written at once
_BLOCKS = 256
_NOTES = 32
_MOST_CALLS = 16


def _digest(kind: str, text: str) -> str:
    return blake2b(f"{kind}\0{text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


class Repeats:
    """What a parser remembers, besides the last time."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._messages: dict[str, list[str]] = {}
        messages = state.get("messages")
        if isinstance(messages, dict):
            self._messages = {
                key: [seen for seen in blocks if isinstance(seen, str)]
                for key, blocks in messages.items()
                if isinstance(blocks, list)
            }
        self._notes = _only_strings(state.get("notes"))
        self._calls = _only_strings(state.get("calls"))

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        if self._messages:
            state["messages"] = {key: list(seen) for key, seen in self._messages.items()}
        if self._notes:
            state["notes"] = dict(self._notes)
        if self._calls:
            state["calls"] = dict(self._calls)
        return state

    def response(self, message_id: str | None, request_id: str | None) -> Response:
        """The known blocks of one response; without an id nothing is a repeat."""
        if message_id is None:
            return Response([])
        # Some gateways give every response the same id.
        key = f"{message_id}\n{request_id or ''}"
        seen = self._messages.pop(key, [])
        self._messages[key] = seen
        if len(self._messages) > _MESSAGES:
            del self._messages[next(iter(self._messages))]
        return Response(seen)

    def forget_responses(self) -> None:
        """After a new prompt, nothing belongs to an earlier response."""
        self._messages.clear()

    def is_new_note(self, kind: str, text: str) -> bool:
        """Whether a note differs from the last one of its kind."""
        digest = _digest(kind, text)
        if self._notes.get(kind) == digest:
            return False
        self._notes.pop(kind, None)
        self._notes[kind] = digest
        if len(self._notes) > _NOTES:
            del self._notes[next(iter(self._notes))]
        return True

    def open_call(self, tool: str, call_id: str) -> None:
        """Remember an old top-level call: its result names the tool, not the call."""
        self._calls.pop(tool, None)
        self._calls[tool] = call_id
        if len(self._calls) > _MOST_CALLS:
            del self._calls[next(iter(self._calls))]

    def close_call(self, tool: str) -> str | None:
        return self._calls.pop(tool, None)


class Response:
    """The blocks of one response that earlier lines had."""

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen
        self._before = frozenset(seen)

    def is_new(self, kind: str, text: str) -> bool:
        """Whether no earlier line had this block; equal blocks in one line are two blocks."""
        digest = _digest(kind, text)
        if digest in self._before:
            return False
        if len(self._seen) < _BLOCKS:
            self._seen.append(digest)
        return True


def _only_strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}
