"""Reads messages: what a person and the model said, calls, and their results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import Event, Record, Result
from sessiond.sourcekit.content import elements, result_text
from sessiond.sourcekit.values import as_dict, as_text, as_time
from sessiond.sources.goose.calls import call_event

SUMMARY, AGAIN = "summary", "again"  # a summary for the model; a prompt that is repeated for it
_REFUSED = re.compile(
    r"The user has declined to run this tool|tool call was skipped in goose chat mode"
    r"|Interrupted by the user|denied by (?:the )?user|Tool call was cancelled",
    re.IGNORECASE,
)
_REQUESTS = ("toolRequest", "frontendToolRequest")
_SILENT = frozenset({"redactedThinking", "toolConfirmationRequest", "image", "document"})
_OUTCOME = 4000  # characters that tell why a call was refused


def read_message(value: dict[str, Any]) -> Record:
    role = as_text(value.get("role"))
    record = Record(role or "other", role=role, native_id=as_text(value.get("id")))
    record.ts = as_time(value.get("created"))
    seen = as_dict(value.get("metadata"))
    for_person, for_model = (
        seen.get("userVisible") is not False,
        seen.get("agentVisible") is not False,
    )
    blocks = list(_joined(elements(value.get("content"), "/content", record.warnings)))
    images = sum(block.get("type") == "image" for _, block in blocks)
    texts = [
        text
        for _, block in blocks
        if block.get("type") == "text" and (text := (as_text(block.get("text")) or "").strip())
    ]
    if role == "user" and (texts or images):
        _read_prompt(
            record, "\n".join(texts), images, value.get("compaction"), (for_person, for_model)
        )
    for pointer, block in blocks:
        _read_block(record, pointer, block, spoken=for_person)
    if role not in ("user", "assistant"):
        record.warnings.append("message without a known role")
    return record


def _joined(blocks: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Thoughts arrive as one block for each token."""
    thought, place = list[str](), ""
    for pointer, block in blocks:
        if block.get("type") in ("thinking", "reasoning"):
            text = block.get("thinking", block.get("text"))
            thought.append(text if isinstance(text, str) else "")
            place = place or pointer
            continue
        if thought:
            yield place, {"type": "thinking", "text": "".join(thought)}
            thought, place = [], ""
        yield pointer, block
    if thought:
        yield place, {"type": "thinking", "text": "".join(thought)}


def _read_prompt(
    record: Record, text: str, images: int, place: Any, seen_by: tuple[bool, bool]
) -> None:
    for_person, for_model = seen_by
    if place == SUMMARY:
        record.events.append(Event("summary", text, label=labels.COMPACT))
    elif not for_person and not for_model:
        pass  # repeated after a compaction
    elif place == AGAIN or not for_person:
        record.events.append(Event("system", text, label=labels.CONTEXT))
    else:
        record.events.append(Event("user", text, images=images))


def _read_block(record: Record, pointer: str, block: dict[str, Any], *, spoken: bool) -> None:
    kind = as_text(block.get("type"))
    if kind == "text":
        text = (as_text(block.get("text")) or "").strip()
        if text and record.role != "user":
            injected = Event("system", text, label=labels.CONTEXT)
            record.events.append(Event("assistant", text) if spoken else injected)
    elif kind == "thinking":
        if text := block["text"].strip():
            record.events.append(Event("thinking", text))
    elif kind in _REQUESTS:
        record.events.append(call_event(block, pointer))
    elif kind == "toolResponse":
        record.results += _result(block, pointer)
    elif kind == "systemNotification":
        if notice := as_text(block.get("msg")):
            record.events.append(Event("system", notice, label="notification"))
    elif kind == "actionRequired":
        if asked := as_text(as_dict(block.get("data")).get("message")):
            record.events.append(Event("system", asked, label="question"))
    elif kind == "error":
        record.say("system", block.get("message"), labels.API_ERROR)
    elif kind == "conversationCompacted":
        record.events.append(Event("system", "Conversation compacted", label=labels.COMPACT))
    elif kind not in _SILENT:
        record.warnings.append(f"content of an unknown type: {kind}")


def _result(block: dict[str, Any], pointer: str) -> list[Result]:
    call, outcome = as_text(block.get("id")), as_dict(block.get("toolResult"))
    if call is None:
        return []
    value = outcome.get("value")
    content = value.get("content") if isinstance(value, dict) else value
    output, images = result_text(_for_model(content))
    if outcome.get("status") == "error":
        output = as_text(outcome.get("error")) or output
    facts = as_dict(as_dict(value).get("structuredContent"))
    code = facts.get("exit_code")
    failed = (
        outcome.get("status") == "error"
        or as_dict(value).get("isError") is True
        or (isinstance(code, int) and not isinstance(code, bool) and code != 0)
        or facts.get("timed_out") is True
    )
    status = "error" if failed else "ok"
    if _REFUSED.search(output[:_OUTCOME]):
        status = "denied"
    return [Result(call, output, status, images=images, pointer=f"{pointer}/toolResult")]


def _for_model(content: Any) -> Any:
    """Without what repeats a result for people."""
    if not isinstance(content, list):
        return content
    shown = [item for item in content if _audience(item) != ["user"]]
    return shown or content


def _audience(item: Any) -> Any:
    return as_dict(as_dict(item).get("annotations")).get("audience")
