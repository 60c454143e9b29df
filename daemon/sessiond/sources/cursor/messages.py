"""Parses messages with a role, from cursor-agent's chats and agent transcripts."""

from __future__ import annotations

import re
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import Event, Record, Result
from sessiond.sourcekit.content import elements, result_text, searchable_input
from sessiond.sourcekit.values import OPAQUE, as_dict, as_milliseconds, as_text, as_time, strings
from sessiond.sources.cursor.calls import describe
from sessiond.sources.cursor.prompts import Segment, read_segments, split_prompt
from sessiond.sources.cursor.richtext import structured

_ROLES = frozenset({"user", "assistant", "tool", "system"})
_TEXTS = frozenset({"text", "input-text", "output-text"})
_THOUGHTS = frozenset({"thinking", "reasoning"})
_HIDDEN = frozenset({"redacted-thinking", "redacted-reasoning"})
_IMAGES = frozenset({"image", "image-url", "input-image"})
_NAMELESS = frozenset(
    (*OPAQUE, "type", "id", "role", "status", "timestamp", "metadata", "providerOptions", "model")
)
_NO_MODEL = frozenset({"auto", "default"})
_REDACTED = "[REDACTED]"
_LABELS_OF_ROLES = {"system": labels.CONTEXT, "tool": labels.TOOL_RESULT}
_CALL_IDS = ("toolCallId", "tool_use_id", "tool_call_id", "id")
_OUTPUTS = ("result", "content", "output", "experimental_content")
_FAILED = ("is_error", "isError")


def parse_message(
    value: dict[str, Any],
    *,
    pointer: str = "",
    native_id: str | None = None,
    summary: bool = False,
) -> Record:
    """Parse one message; `pointer` leads to it in the raw record.

    `summary` if the agent wrote it in the name of the user, which the message may say itself.
    """
    message = value.get("message")
    body = message if isinstance(message, dict) else value
    kind = as_text(value.get("type"))
    role = as_text(value.get("role")) or as_text(body.get("role"))
    role = role or (kind if kind in _ROLES else None)
    record = Record(role or kind or "unknown", role=role, native_id=native_id)
    written = value.get("timestamp")
    record.ts = as_time(written)
    if written is not None and record.ts is None:
        record.warnings.append("bad timestamp")
    record.model = _model(value) or _model(body)
    if role is None:
        _read_notice(record, value)
        return record
    place, content = _content(value, body)
    found = list(elements(content, pointer + place, record.warnings))
    if role == "user":
        _read_user(record, value, found, summary=summary or is_summary(value))
    else:
        _read_others(record, value, found)
        _join_results(record)
    return record


def is_summary(value: dict[str, Any]) -> bool:
    """Whether a message says that the agent wrote it in the name of the user."""
    return _options(value).get("isSummary") is True


def _content(value: dict[str, Any], body: dict[str, Any]) -> tuple[str, Any]:
    message = value.get("message")
    if isinstance(message, (str, list)):
        return "/message", message
    name = "text" if "content" not in body and "text" in body else "content"
    return (f"/{name}" if body is value else f"/message/{name}"), body.get(name)


def _model(value: dict[str, Any]) -> str | None:
    model = as_text(value.get("model")) or as_text(_options(value).get("modelName"))
    return model if model and model.lower() not in _NO_MODEL else None


def _options(value: dict[str, Any]) -> dict[str, Any]:
    return as_dict(as_dict(value.get("providerOptions")).get("cursor"))


def _read_notice(record: Record, value: dict[str, Any]) -> None:
    """Read a line that is not a message."""
    status = as_text(value.get("status")) or ""
    content: Any = value
    label = record.kind
    if record.kind in ("error", "turn_ended"):
        if record.kind == "turn_ended" and not re.search("error|fail", status, re.IGNORECASE):
            return
        content = value.get("error") or value.get("message") or status
        label = labels.ERROR
    text = "\n".join(strings(content, _NAMELESS)).strip()
    _add(record, Event("system", text, label=label))


def _add(record: Record, event: Event | None) -> None:
    if event is not None and (event.text or event.type == "tool_use"):
        record.events.append(event)


# -- messages of the agent and its tools


def _read_others(
    record: Record, value: dict[str, Any], found: list[tuple[str, dict[str, Any]]]
) -> None:
    for place, block in found:
        kind = _kind(block)
        alone = len(found) == 1
        if kind.endswith("tool-result") or (record.role == "tool" and alone and _call_id(value)):
            _read_result(record, value, place, block, alone=alone)
        elif record.role == "assistant":
            _add(record, _assistant_event(kind, place, block))
            record.model = record.model or _model(block)
        else:
            label = _LABELS_OF_ROLES.get(record.kind, record.kind)
            _add(record, Event("system", _visible(block), label=label))


def _kind(block: dict[str, Any]) -> str:
    kind = block.get("type")
    return kind.replace("_", "-") if isinstance(kind, str) else ""


def _assistant_event(kind: str, place: str, block: dict[str, Any]) -> Event | None:
    if kind in _TEXTS:
        return Event("assistant", _unredacted(block.get("text")))
    if kind in _THOUGHTS:
        thought = block.get("thinking") or block.get("text") or block.get(kind)
        return Event("thinking", _unredacted(thought))
    if kind.endswith(("tool-call", "tool-use")):
        return _tool_call(place, block)
    if _is_image(kind, block):
        return Event("assistant", "[image]", images=1)
    return _other_event(kind, block)


def _unredacted(value: Any) -> str:
    text = value.strip() if isinstance(value, str) else ""
    while text.endswith(_REDACTED):
        text = text[: -len(_REDACTED)].rstrip()
    return text


def _is_image(kind: str, block: dict[str, Any]) -> bool:
    media = as_text(block.get("mediaType")) or as_text(block.get("mimeType")) or ""
    return kind in _IMAGES or (kind == "file" and media.startswith("image/"))


def _other_event(kind: str, block: dict[str, Any]) -> Event | None:
    label = as_text(block.get("type")) or "block"
    return None if kind in _HIDDEN else Event("system", _visible(block), label=label)


def _visible(block: dict[str, Any]) -> str:
    text = block.get("text")
    if not isinstance(text, str):
        text = "\n".join(strings(block, _NAMELESS))
    return text.strip()


def _tool_call(place: str, block: dict[str, Any]) -> Event:
    tool = as_text(block.get("toolName")) or as_text(block.get("name"))
    name = next((name for name in ("args", "input", "arguments") if name in block), "input")
    given = structured(block.get(name))
    described = describe(tool, given)
    call_id = _call_id(block)
    return Event(
        "tool_use",
        tool=tool,
        # Transcripts have no call ids, and no results that would need them.
        status="pending" if call_id else None,
        summary=described.summary,
        input=searchable_input(given),
        call_id=call_id,
        pointer=f"{place}/{name}",
        files=described.files,
        kind=described.kind,
        edits=described.edits,
    )


def _call_id(value: dict[str, Any]) -> str | None:
    return next(filter(None, (as_text(value.get(name)) for name in _CALL_IDS)), None)


def _read_result(
    record: Record, value: dict[str, Any], place: str, block: dict[str, Any], *, alone: bool
) -> None:
    if _kind(block).endswith("tool-result"):
        name = next((name for name in _OUTPUTS if block.get(name) is not None), _OUTPUTS[0])
        output, images = result_text(block.get(name))
        images = images or result_text(block.get("experimental_content"))[1]
        call_id, pointer = _call_id(block), f"{place}/{name}"
    else:
        output, images, call_id, pointer = _visible(block), 0, None, place
    if call_id is None and alone and record.role == "tool":
        call_id = _call_id(value)
    if call_id is None:
        _add(record, Event("system", output.strip(), label=labels.TOOL_RESULT, images=images))
        return
    # A message with several results does not say which one its details belong to.
    details = as_dict(_options(value).get("highLevelToolCallResult")) if alone else {}
    status, duration = _outcome(block, details)
    record.results.append(Result(call_id, output, status, duration, images, pointer=pointer))


def _join_results(record: Record) -> None:
    """Join results with calls of the same message: it may grow, and then changes as one."""
    calls = {event.call_id: event for event in record.events if event.call_id}
    for result in record.results:
        if call := calls.get(result.call_id):
            call.output, call.status, call.duration_ms = (
                *(result.output, result.status, result.duration_ms),
            )
            call.images += result.images
    record.results = [result for result in record.results if result.call_id not in calls]


def _outcome(block: dict[str, Any], details: dict[str, Any]) -> tuple[str, int | None]:
    output = as_dict(details.get("output"))
    success = as_dict(output.get("success"))
    duration = as_milliseconds(success.get("executionTime"))
    if duration is None:
        duration = as_milliseconds(success.get("durationMs"))
    if duration is None:
        duration = as_milliseconds(block.get("durationMs"))
    if "rejected" in output or "permissionDenied" in output or block.get("isDenied") is True:
        return "denied", duration
    kind = as_text(as_dict(block.get("output")).get("type")) or ""
    marks = [holder.get(name) is True for holder in (block, details, output) for name in _FAILED]
    return ("error" if any(marks) or kind.startswith("error") else "ok"), duration


# -- messages of a person


def _read_user(
    record: Record,
    value: dict[str, Any],
    found: list[tuple[str, dict[str, Any]]],
    *,
    summary: bool,
) -> None:
    segments: list[Segment] = []
    images = 0
    for place, block in found:
        kind = _kind(block)
        if kind.endswith("tool-result"):
            _read_result(record, value, place, block, alone=len(found) == 1)
        elif _is_image(kind, block):
            images += 1
        elif kind in _TEXTS or (not kind and isinstance(block.get("text"), str)):
            segments += split_prompt(_visible(block))
        else:
            _add(record, _other_event(kind, block))
    if summary:
        text = "".join(segment.whole for segment in segments).strip()
        _add(record, Event("summary", text, label=labels.COMPACT))
    else:
        read_segments(record, segments, images)
