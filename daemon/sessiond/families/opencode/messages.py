"""Messages of the first generation with their parts, in the shape that `opencode export` writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sess_schema import labels
from sessiond.families.opencode.calls import first_call, links_of
from sessiond.families.opencode.tokens import usage_of
from sessiond.sourcekit.base import Event, Record
from sessiond.sourcekit.values import as_dict, as_text, as_time

_ABORTED = "MessageAbortedError"
# Parts that mark where steps begin and end, or name what the step left on disk.
_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent"})


def read_message(value: dict[str, Any]) -> Record:
    info = as_dict(value.get("info"))
    role = as_text(info.get("role"))
    record = Record(role or "other", role=role, native_id=as_text(info.get("id")))
    record.parent_id = as_text(info.get("parentID"))
    record.ts = as_time(as_dict(info.get("time")).get("created"))
    record.model = _model(info)
    record.cwd = _folder(info.get("path"))
    parts = list(_parts(value.get("parts"), record))
    if role == "user":
        _read_prompt(record, info, parts)
    else:
        _read_answer(record, info, parts)
    if role not in ("user", "assistant"):
        record.warnings.append("message without a known role")
    return record


def _parts(parts: Any, record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, dict):
            yield f"/parts/{number}", part
        else:
            record.warnings.append(f"part {number} is not an object")


def _read_prompt(
    record: Record, info: dict[str, Any], parts: list[tuple[str, dict[str, Any]]]
) -> None:
    """What a person typed as one prompt, and what the client added as notices."""
    typed, added = list[str](), list[Event]()
    images = 0
    for _, part in parts:
        kind, text = as_text(part.get("type")), as_text(part.get("text"))
        if kind == "text":
            if not text:
                continue
            if part.get("synthetic") is True or part.get("ignored") is True:
                added.append(Event("system", text.strip(), label=labels.CONTEXT))
            else:
                typed.append(text)
        elif kind == "file":
            images += (as_text(part.get("mime")) or "").startswith("image/")
        elif kind == "subtask":
            typed.append(as_text(part.get("prompt")) or as_text(part.get("description")) or "")
        elif kind == "compaction":
            added.append(Event("system", "Conversation compacted", label=labels.COMPACT))
        elif kind not in _SILENT:
            record.warnings.append(f"part of an unknown type: {kind}")
    if not parts:  # the first versions kept only a summary of a prompt
        typed.append(as_text(as_dict(info.get("summary")).get("title")) or "")
    text = "\n".join(typed).strip()
    if text or images:
        record.events.append(Event("user", text, images=images))
    record.events += added


def _read_answer(
    record: Record, info: dict[str, Any], parts: list[tuple[str, dict[str, Any]]]
) -> None:
    is_summary = info.get("summary") is True
    steps = []
    for place, part in parts:
        kind, text = as_text(part.get("type")), (as_text(part.get("text")) or "").strip()
        if kind == "text":
            if text:
                record.events.append(_said(text, part, is_summary=is_summary))
        elif kind == "reasoning":
            if text:
                record.events.append(Event("thinking", text))
        elif kind == "tool":
            event = first_call(part, place)
            record.events.append(event)
            record.links += links_of(part, event)
        elif kind == "step-finish":
            steps.append(part)
        elif kind == "retry":
            record.events.append(_failure(as_dict(part.get("error"))))
        elif kind == "file":
            if (as_text(part.get("mime")) or "").startswith("image/"):
                record.events.append(Event("assistant", "", images=1))
        elif kind == "compaction":
            record.events.append(Event("system", "Conversation compacted", label=labels.COMPACT))
        elif kind not in _SILENT:
            record.warnings.append(f"part of an unknown type: {kind}")
    if isinstance(info.get("error"), dict):
        record.events.append(_failure(info["error"]))
    record.usage = usage_of(info, steps, record)


def _said(text: str, part: dict[str, Any], *, is_summary: bool) -> Event:
    if is_summary:
        return Event("summary", text, label=labels.COMPACT)
    if part.get("synthetic") is True or part.get("ignored") is True:
        return Event("system", text, label=labels.CONTEXT)
    return Event("assistant", text)


def _failure(error: dict[str, Any]) -> Event:
    name, data = as_text(error.get("name")) or "", as_dict(error.get("data"))
    text = as_text(data.get("message")) or as_text(error.get("message")) or name
    label = labels.INTERRUPTED if name == _ABORTED else labels.API_ERROR
    return Event("system", text, label=label)


def _model(info: dict[str, Any]) -> str | None:
    if info.get("role") == "user":
        return None  # the model that was chosen, not one that answered
    model = as_dict(info.get("model"))
    return as_text(info.get("modelID")) or as_text(model.get("modelID")) or as_text(model.get("id"))


def _folder(path: Any) -> str | None:
    return as_text(path) or as_text(as_dict(path).get("cwd"))
