"""Messages in blocks, as the Anthropic API has them: many agents store them as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessiond.sourcekit.base import Record, Result
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import as_text, content_blocks, result_text

_TEXTS = frozenset({"text", "input_text", "output_text"})
_THOUGHTS = frozenset({"thinking", "anthropic_thinking", "reasoning", "reasoning_trace"})
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_MEDIA = frozenset({"image", "document", "file"})
_ANSWER = "tool_result"  # also at the end of the names of server tools' results

Label = Callable[[str], str | None]


def nobody_added(_text: str) -> str | None:
    return None


def read_blocks(
    record: Record, content: Any, place: str, tools: Toolbox, added: Label = nobody_added
) -> None:
    """Add the events and results of a message; `record.role` says whose it is.

    `added` labels text in a user's message that the program put there.
    """
    typed: list[str] = []
    images = 0
    for pointer, block in content_blocks(content, place, record.warnings):
        kind = as_text(block.get("type")) or ""
        text = as_text(block.get("text")) or ""
        if kind in _TEXTS:
            if record.role != "user":
                record.say("assistant", text)
            elif label := added(text):
                record.say("system", text, label)
            else:
                typed.append(text)
        elif kind in _THOUGHTS:
            record.say("thinking", as_text(block.get("thinking")) or text)
        elif kind in _CALLS:
            call_id, tool = as_text(block.get("id")), as_text(block.get("name"))
            record.events.append(tools.call(tool, block.get("input"), call_id, f"{pointer}/input"))
        elif kind.endswith(_ANSWER):
            _answer(record, block, pointer)
        elif kind in _MEDIA:
            images += 1
    prompt = "\n".join(filter(None, typed)).strip()
    if prompt or (images and not record.results):
        record.ask(prompt, images)
    _join(record)


def _join(record: Record) -> None:
    """Complete the calls of a message that also has their results."""
    calls = {event.call_id: event for event in record.events if event.call_id}
    for result in [one for one in record.results if one.call_id in calls]:
        call = calls[result.call_id]
        call.output, call.status, call.images = result.output, result.status, result.images
        record.results.remove(result)


def _answer(record: Record, block: dict[str, Any], pointer: str) -> None:
    call_id = as_text(block.get("tool_use_id"))
    if call_id is None:
        record.warnings.append("a result names no call")
        return
    output, images = result_text(block.get("content"))
    status = "error" if block.get("is_error") is True else "ok"
    record.results.append(
        Result(call_id, output, status, images=images, pointer=f"{pointer}/content")
    )
