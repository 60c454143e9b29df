"""Reads messages: typed parts of what was said, of calls and of their results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sess_schema import kinds, labels
from sessiond.sourcekit.base import Event, Record, Result
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import as_dict, as_milliseconds, as_text, as_time, decoded

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("bash", "job_output", "job_kill"),
        kinds.READ: ("view",),
        kinds.WRITE: ("write", "download"),
        kinds.EDIT: ("edit", "multiedit", "hashline_edit"),
        kinds.SEARCH: ("ls", "glob", "grep", "sourcegraph", "references", "lsp_references"),
        kinds.FETCH: ("fetch", "agentic_fetch", "web_fetch", "web_search"),
        kinds.AGENT: ("agent",),
        kinds.PLAN: ("todos", "exit_plan_mode"),
        kinds.QUESTION: ("ask_user", "ask_user_questions"),
    }
)
_REFUSED = re.compile(
    r"\A(?:User denied permission|permission denied|Error: user cancelled assistant tool calling"
    r"|Tool execution canceled)"
    r"|Command was aborted before completion",
    re.IGNORECASE,
)
_EXIT = re.compile(r"^Exit code ([1-9]\d*)\s*(?:<cwd>[^\n]*</cwd>\s*)?\Z", re.MULTILINE)
_ENDING = 4000  # characters that tell how a command ended
_CONTINUED = "The previous session was interrupted because it got too long"


def read_message(value: dict[str, Any]) -> Record:
    role = as_text(value.get("role"))
    record = Record(role or "other", role=role, native_id=as_text(value.get("id")))
    record.ts = as_time(value.get("created_at"))
    record.model = as_text(value.get("model")) if role == "assistant" else None
    parts = list(_parts(value.get("parts"), record))
    if role == "user":
        _read_prompt(record, parts)
    else:
        is_summary = value.get("is_summary_message") in (1, True)
        for pointer, kind, data in parts:
            _read_part(record, value, pointer, kind, data, is_summary=is_summary)
    if role not in ("user", "assistant", "tool", "system"):
        record.warnings.append("message without a known role")
    return record


def _parts(parts: Any, record: Record) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if isinstance(parts, str):
        record.warnings.append("parts are not JSON")
    for number, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, dict):
            kind, data = as_text(part.get("type")) or "", as_dict(part.get("data"))
            yield f"/parts/{number}/data", kind, data
        else:
            record.warnings.append(f"part {number} is not an object")


def _read_prompt(record: Record, parts: list[tuple[str, str, dict[str, Any]]]) -> None:
    typed, added, images = list[str](), list[Event](), 0
    for _, kind, data in parts:
        if kind == "text":
            text = (as_text(data.get("text")) or "").strip()
            if data.get("hidden") is True or text.startswith(_CONTINUED):
                added.append(Event("system", text, label=labels.CONTEXT))
            else:
                typed.append(text)
        elif kind == "shell_command":
            added.append(Event("user", as_text(data.get("command")) or "", label=labels.BASH))
            if output := as_text(data.get("output")):
                added.append(Event("system", output, label=labels.BASH_OUTPUT))
        elif kind == "image_url" or (kind == "binary" and _is_image(data.get("MIMEType"))):
            images += 1
        elif kind not in ("binary", "finish"):
            record.warnings.append(f"part of an unknown type: {kind}")
    text = "\n".join(filter(None, typed))
    if text or images:
        record.events.append(Event("user", text, images=images))
    record.events += added


def _read_part(
    record: Record,
    value: dict[str, Any],
    pointer: str,
    kind: str,
    data: dict[str, Any],
    *,
    is_summary: bool,
) -> None:
    if kind == "text":
        if text := (as_text(data.get("text")) or "").strip():
            record.events.append(_said(record.role, text, is_summary=is_summary))
    elif kind == "reasoning":
        if text := (as_text(data.get("thinking")) or "").strip():
            record.events.append(Event("thinking", text))
    elif kind == "tool_call":
        tool, given = as_text(data.get("name")), decoded(data.get("input"))
        call = _scoped(record.native_id, data.get("id"))
        event = _TOOLS.call(tool, data.get("input") if given is None else given, call, None)
        event.pointer = f"{pointer}/input"
        record.events.append(event)
    elif kind == "tool_result":
        record.results += _result(data, pointer, value.get("caller"))
    elif kind == "finish":
        record.events += _end(data)
    elif kind not in ("binary", "image_url"):
        record.warnings.append(f"part of an unknown type: {kind}")


def _said(role: str | None, text: str, *, is_summary: bool) -> Event:
    if is_summary:
        return Event("summary", text, label=labels.COMPACT)
    if role == "assistant":
        return Event("assistant", text)
    return Event("system", text, label=labels.CONTEXT)


def _scoped(message: Any, call: Any) -> str | None:
    """Some models number their calls anew in each answer."""
    return f"{message}/{call}" if as_text(call) and as_text(message) else None


def _result(data: dict[str, Any], pointer: str, caller: Any) -> list[Result]:
    call = _scoped(caller, data.get("tool_call_id"))
    if call is None:
        return []
    output = as_text(data.get("content")) or ""
    facts = as_dict(decoded(data.get("metadata")))
    status = "ok"
    if _REFUSED.search(output[-_ENDING:]):
        status = "denied"
    elif data.get("is_error") is True or _EXIT.search(output[-_ENDING:]):
        status = "error"
    first, last = as_time(facts.get("start_time")), as_time(facts.get("end_time"))
    took = as_milliseconds(last - first) if first is not None and last is not None else None
    images = int(_is_image(data.get("mime_type")))
    return [Result(call, output, status, took, images, pointer=f"{pointer}/content")]


def _end(data: dict[str, Any]) -> list[Event]:
    """How an answer ended, if not as it should."""
    reason = data.get("reason")
    said = (as_text(data.get(name)) for name in ("message", "details"))
    text = ": ".join(filter(None, said))
    if reason == "canceled":
        return [Event("system", text or "canceled", label=labels.INTERRUPTED)]
    if reason == "error":
        return [Event("system", text or "error", label=labels.API_ERROR)]
    if reason == "content_filter":
        return [Event("system", text or "refused", label=labels.API_REFUSAL)]
    return []


def _is_image(kind: Any) -> bool:
    return (as_text(kind) or "").startswith("image/")
