"""Entries of the logs of version 2: messages, and what happened to the conversation."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Title
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_dict, as_text, as_time, strings
from sessiond.sources.kiro import messages
from sessiond.sources.kiro.memory import Memory
from sessiond.sources.kiro.tools import blocks, call, result

_NAMING = "You are a session naming agent"


class KiroParser(Memory):
    def parse(self, value: dict[str, Any]) -> Record:
        read = messages.read if isinstance(value.get("payload"), dict) else _read
        record = read(value, self)
        self.note(record)
        return record


def _read(value: dict[str, Any], memory: Memory) -> Record:
    kind = as_text(value.get("kind")) or "other"
    data = as_dict(value.get("data"))
    record = Record(kind, native_id=as_text(data.get("message_id")))
    record.ts = as_time(as_dict(data.get("meta")).get("timestamp"))
    if kind == "Prompt":
        record.role = "user"
        _prompt(record, data)
    elif kind == "AssistantMessage":
        record.role = "assistant"
        _answer(record, data)
    elif kind == "ToolResults":
        record.role = "user"
        _results(record, data, memory)
    elif kind == "Compaction":
        if summary := as_text(data.get("summary")):
            record.events.append(Event("summary", summary, label=labels.COMPACT))
    elif kind == "Clear":
        record.events.append(Event("system", "Context cleared", label="clear"))
    elif kind == "CancelledPrompt":
        record.events.append(Event("system", "Canceled", label=labels.INTERRUPTED))
    elif kind == "ResetTo":
        position = data.get("target_index")
        record.retires += memory.back_to_position(position) if isinstance(position, int) else []
    else:
        record.warnings.append("entry of an unknown kind")
        if text := "\n".join(strings(data)):
            record.events.append(Event("system", text, label=kind))
    return record


def _parts(data: dict[str, Any]) -> list[tuple[int, str, Any]]:
    content = data.get("content")
    return [
        (number, as_text(part.get("kind")) or "", part.get("data"))
        for number, part in enumerate(content if isinstance(content, list) else ())
        if isinstance(part, dict)
    ]


def _prompt(record: Record, data: dict[str, Any]) -> None:
    parts = _parts(data)
    text = "".join(value for _, kind, value in parts if kind == "text" and isinstance(value, str))
    images = sum(kind == "image" for _, kind, _ in parts)
    text = text.strip()
    if text.startswith(_NAMING):
        record.events.append(Event("system", text, label=labels.CONTEXT))
    elif text or images:
        record.events.append(Event("user", text or "[image]", images=images))
        if title := prompt_title(text):
            record.titles.append(Title(title, TITLE_PROMPT))


def _answer(record: Record, data: dict[str, Any]) -> None:
    for number, kind, value in _parts(data):
        if kind == "text":
            if isinstance(value, str) and value.strip():
                record.events.append(Event("assistant", value.strip()))
        elif kind == "thinking":
            record.model = as_text(as_dict(value).get("modelId")) or record.model
            if text := (as_text(as_dict(value).get("text")) or "").strip():
                record.events.append(Event("thinking", text))
        elif kind in ("toolUse", "tooluse"):
            use = as_dict(value)
            pointer = f"/data/content/{number}/data/input"
            name, call_id = as_text(use.get("name")), as_text(use.get("toolUseId"))
            record.events.append(call(name, use.get("input"), call_id, pointer))
        elif kind != "image":
            record.warnings.append(f"part of an unknown kind: {kind}")


def _results(record: Record, data: dict[str, Any], memory: Memory) -> None:
    details = as_dict(data.get("results"))
    for number, kind, value in _parts(data):
        returned = as_dict(value)
        call_id = as_text(returned.get("toolUseId"))
        if kind == "text" and isinstance(value, str) and value.strip():
            record.events.append(Event("system", value.strip(), label=labels.CONTEXT))
        if kind not in ("toolResult", "toolresult") or call_id is None:
            continue
        text, images, broke = blocks(returned.get("content"))
        failed = broke or str(returned.get("status", "")).casefold() == "error"
        pointer = f"/data/content/{number}/data/content"
        found = result(call_id, text, failed=failed, images=images, pointer=pointer)
        canceled = as_dict(details.get(call_id)).get("result") == "Cancelled"
        if canceled or memory.was_refused(call_id):
            found.status = "denied"
        record.results.append(found)
