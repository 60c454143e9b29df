"""Reads messages, in the format of 2025 (roles and segments) and the one since (tagged values)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sess_schema import kinds, labels
from sess_schema.edits import Edit
from sessiond.sourcekit.base import LINK_RESULT, Event, Link, Record, Result
from sessiond.sourcekit.toolbox import Toolbox, event_of
from sessiond.sourcekit.values import as_dict, as_text, strings

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("terminal", "sandboxed_terminal", "bash"),
        kinds.READ: ("read_file", "open"),
        kinds.WRITE: ("write_file", "create_file", "save_file"),
        kinds.EDIT: ("edit_file", "streaming_edit_file", "edit_files", "find_replace_file"),
        kinds.SEARCH: ("grep", "find_path", "list_directory", "path_search", "diagnostics"),
        kinds.FETCH: ("fetch", "web_search"),
        kinds.AGENT: ("spawn_agent", "subagent", "spawn_subagent"),
        kinds.PLAN: ("update_plan", "exit_plan_mode"),
        kinds.QUESTION: ("ask_user",),
    }
)
_REFUSED = re.compile(
    r"Tool canceled by user|denied (?:permission|by (?:the )?user)|user denied",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"Command .{0,2000}?(?:failed with exit code|was (?:interrupted|killed))", re.DOTALL
)
_OUTCOME = 4000  # characters that tell how a call ended
_PLACES = ("abs_path", "path", "name", "title", "url")


def read_message(value: dict[str, Any]) -> Record:
    tag, body = next(iter(value.items()), ("", None)) if len(value) == 1 else ("", None)
    if tag == "User":
        return _read_prompt(as_dict(body))
    if tag == "Agent":
        return _read_answer(as_dict(body))
    if tag == "Compaction":
        record = Record("compaction", role="system")
        text = "\n".join(strings(body)).strip()
        if text:
            record.events.append(Event("summary", text, label=labels.COMPACT))
        return record
    if tag == "message":  # "Resume": the model goes on where it stopped
        return Record("resume", role="user")
    return _read_older(value)


# -- since version 0.3.0


def _tagged(content: Any, record: Record) -> Iterator[tuple[int, str, Any]]:
    for number, piece in enumerate(content if isinstance(content, list) else ()):
        if isinstance(piece, dict) and len(piece) == 1:
            yield number, *next(iter(piece.items()))
        else:
            record.warnings.append(f"content element {number} is not a tagged value")


def _read_prompt(body: dict[str, Any]) -> Record:
    record = Record("user", role="user")
    typed, attached, images = list[str](), list[str](), 0
    for _, tag, inner in _tagged(body.get("content"), record):
        if tag == "Text":
            typed.append(as_text(inner) or "")
        elif tag == "Mention":
            fields = as_dict(inner)
            typed.append(_mention(fields.get("uri")))
            attached.append(as_text(fields.get("content")) or "")
        elif tag == "Image":
            images += 1
        else:
            record.warnings.append(f"content of an unknown type: {tag}")
    text = "".join(typed).strip()
    if text or images:
        record.events.append(Event("user", text, images=images))
    if context := "\n".join(filter(None, attached)).strip():
        record.events.append(Event("system", context, label=labels.CONTEXT))
    return record


def _mention(uri: Any) -> str:
    """What a person sees of a mention: @ and the name of the file, symbol, thread ..."""
    inner = as_dict(next(iter(uri.values()), None)) if isinstance(uri, dict) and uri else {}
    named = next((text for name in _PLACES if (text := as_text(inner.get(name)))), None)
    return f"@{named or as_text(uri) or 'mention'}"


def _read_answer(body: dict[str, Any]) -> Record:
    record = Record("agent", role="assistant")
    results = dict(as_dict(body.get("tool_results")))
    for number, tag, inner in _tagged(body.get("content"), record):
        if tag == "Text":
            if text := (as_text(inner) or "").strip():
                record.events.append(Event("assistant", text))
        elif tag == "Thinking":
            if text := (as_text(as_dict(inner).get("text")) or "").strip():
                record.events.append(Event("thinking", text))
        elif tag == "ToolUse":
            call = as_dict(inner)
            result = results.pop(as_text(call.get("id")) or "", None)
            _add_call(record, call, result, f"/Agent/content/{number}/ToolUse/input")
        elif tag != "RedactedThinking":
            record.warnings.append(f"content of an unknown type: {tag}")
    _add_results(record, results)  # of calls that are no longer there
    return record


def _add_results(record: Record, results: Mapping[Any, Any]) -> None:
    for call_id, result in results.items():
        if call_id:
            output, images = _content(as_dict(result).get("content"))
            status = _status(as_dict(result), output)
            record.results.append(Result(call_id, output, status, images=images))


def _add_call(record: Record, call: dict[str, Any], result: Any, pointer: str) -> None:
    """A call with its result, if there is one."""
    tool, given, call_id = as_text(call.get("name")), call.get("input"), as_text(call.get("id"))
    output = as_dict(as_dict(result).get("output"))
    kind = _TOOLS.kind(tool)
    if kind == kinds.EDIT and as_dict(given).get("mode") in ("create", "overwrite"):
        kind = kinds.WRITE
    described = _TOOLS.describe(tool, given, kind, tuple(_edits(kind, given, output)))
    event = event_of(described, tool, given, call_id, pointer)
    if isinstance(result, dict):
        event.output, event.images = _content(result.get("content"))
        event.status = _status(result, event.output)
    record.events.append(event)
    child = as_text(output.get("session_id")) or as_text(output.get("subagent_session_id"))
    if child and call_id and kind == kinds.AGENT:
        record.links.append(Link(child, call_id, LINK_RESULT, home=""))


def _edits(kind: str, given: Any, output: dict[str, Any]) -> Iterator[Edit]:
    """The diff that a finished edit recorded."""
    if kind not in (kinds.EDIT, kinds.WRITE):
        return
    path = as_text(as_dict(given).get("path")) or as_text(output.get("input_path"))
    diff, text = as_text(output.get("diff")), as_text(output.get("new_text"))
    if path and diff:
        yield Edit(path, patch=diff)
    elif path and text:
        yield Edit(path, as_text(output.get("old_text")) or "", text)


def _content(content: Any) -> tuple[str, int]:
    """The text of a result and its images: a string, a tagged value, or a list of these."""
    texts, images = list[str](), 0
    for piece in content if isinstance(content, list) else [content]:
        if isinstance(piece, str):
            texts.append(piece)
        elif isinstance(piece, dict) and "Image" in piece:
            images += 1
        else:
            texts += strings(piece, frozenset({"type"}))
    return "\n".join(texts), images


def _status(result: dict[str, Any], output: str) -> str:
    said = output[:_OUTCOME]
    if _REFUSED.search(said):
        return "denied"
    return "error" if result.get("is_error") is True or _FAILED.match(said) else "ok"


# -- before


def _read_older(value: dict[str, Any]) -> Record:
    role = as_text(value.get("role"))
    record = Record(role or "other", role=role)
    if role not in ("user", "assistant", "system"):
        record.warnings.append("message without a known role")
    for kind, text in _segments(value):
        if role != "user":
            spoken = "assistant" if role == "assistant" else "system"
            record.events.append(Event("thinking" if kind == "thinking" else spoken, text))
        elif value.get("is_hidden") is True:
            record.events.append(Event("system", text, label=labels.CONTEXT))
        else:
            record.events.append(Event("user", text))
    if context := (as_text(value.get("context")) or "").strip():
        record.events.append(Event("system", context, label=labels.CONTEXT))
    results = {
        as_text(result.get("tool_use_id")): result
        for result in map(as_dict, _listed(value.get("tool_results")))
    }
    for number, call in enumerate(map(as_dict, _listed(value.get("tool_uses")))):
        result = results.pop(as_text(call.get("id")), None)
        _add_call(record, call, result, f"/tool_uses/{number}/input")
    _add_results(record, results)  # at first they were in the next prompt
    return record


def _segments(value: dict[str, Any]) -> Iterator[tuple[str | None, str]]:
    segments = value.get("segments")
    for segment in [value] if segments is None else map(as_dict, _listed(segments)):
        if text := (as_text(segment.get("text")) or "").strip():
            yield as_text(segment.get("type")), text


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
