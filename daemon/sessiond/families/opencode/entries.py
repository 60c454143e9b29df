"""Messages of the second generation: typed rows, an answer with everything it contains."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.families.opencode.calls import links_of, second_call
from sessiond.families.opencode.tokens import usage_of
from sessiond.sourcekit.base import Event, Record
from sessiond.sourcekit.values import as_dict, as_text, as_time

_INJECTED = {
    "synthetic": labels.CONTEXT,
    "system": labels.CONTEXT,
    "skill": "skill",
}
_SILENT = frozenset({"agent-switched", "model-switched", "location-switched", "idle"})
_STOPPED = ("abort", "interrupt", "cancel")


def read_entry(value: dict[str, Any]) -> Record:
    kind = as_text(value.get("type")) or "other"
    record = Record(kind, role=kind, native_id=as_text(value.get("id")))
    record.ts = as_time(as_dict(value.get("time")).get("created"))
    if kind == "user":
        _read_prompt(record, value)
    elif kind == "assistant":
        _read_answer(record, value)
    elif kind == "shell":
        _read_shell(record, value)
    elif kind == "compaction":
        _read_compaction(record, value)
    elif kind in _INJECTED:
        if text := (as_text(value.get("text")) or "").strip():
            record.events.append(Event("system", text, label=_INJECTED[kind]))
    elif kind == "location-switched":
        record.cwd = as_text(as_dict(value.get("location")).get("directory"))
    elif kind not in _SILENT:
        record.warnings.append(f"record of an unknown type: {kind}")
    return record


def _read_prompt(record: Record, value: dict[str, Any]) -> None:
    files = value.get("files")
    images = sum(
        (as_text(as_dict(file).get("mime")) or "").startswith("image/")
        for file in (files if isinstance(files, list) else ())
    )
    text = (as_text(value.get("text")) or "").strip()
    if text or images:
        record.events.append(Event("user", text, images=images))


def _read_answer(record: Record, value: dict[str, Any]) -> None:
    model = as_dict(value.get("model"))
    record.model = as_text(model.get("id")) or as_text(model.get("modelID"))
    content = value.get("content")
    for number, part in enumerate(content if isinstance(content, list) else ()):
        kind = as_text(as_dict(part).get("type"))
        if kind == "tool":
            event = second_call(part, f"/content/{number}")
            record.events.append(event)
            record.links += links_of(part, event)
        elif kind in ("text", "reasoning"):
            text = (as_text(part.get("text")) or "").strip()
            said = "assistant" if kind == "text" else "thinking"
            if text and part.get("synthetic") is True:
                record.events.append(Event("system", text, label=labels.CONTEXT))
            elif text:
                record.events.append(Event(said, text))
        else:
            record.warnings.append(f"content of an unknown type: {kind}")
    if isinstance(value.get("error"), dict):
        record.events.append(_failure(value["error"]))
    record.usage = usage_of(value, (), record)


def _read_shell(record: Record, value: dict[str, Any]) -> None:
    """A command that a person ran."""
    if command := as_text(value.get("command")):
        record.events.append(Event("user", command, label=labels.BASH))
    output = value.get("output")
    text = as_text(output) or as_text(as_dict(output).get("text")) or ""
    text = text or as_text(as_dict(output).get("output")) or ""
    if text:
        record.events.append(Event("system", text, label=labels.BASH_OUTPUT))


def _read_compaction(record: Record, value: dict[str, Any]) -> None:
    record.model = as_text(as_dict(value.get("model")).get("id"))
    if text := (as_text(value.get("summary")) or "").strip():
        record.events.append(Event("summary", text, label=labels.COMPACT))
    if isinstance(value.get("error"), dict):
        record.events.append(_failure(value["error"]))
    record.usage = usage_of(value, (), record)


def _failure(error: dict[str, Any]) -> Event:
    kind = as_text(error.get("type")) or ""
    stopped = any(word in kind.casefold() for word in _STOPPED)
    label = labels.INTERRUPTED if stopped else labels.API_ERROR
    return Event("system", as_text(error.get("message")) or kind, label=label)
