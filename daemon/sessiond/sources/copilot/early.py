"""Sessions of the first releases: one JSON document each, a timeline of what was shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.base import (
    TITLE_PROMPT,
    Conversation,
    Event,
    Item,
    NotReady,
    Record,
    Result,
    SessionSpec,
    Title,
)
from sessiond.sourcekit.documents import whole_json
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_dict, as_text, as_time

_STATES = {"failure": "error", "rejected": "denied", "denied": "denied"}


class Sessions:
    """Reads `{sessionId, startTime, timeline}`."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        whole = whole_json(data)
        timeline = whole.get("timeline") if isinstance(whole, dict) else None
        if not isinstance(timeline, list):
            raise NotReady("is not a session")
        name = os.path.splitext(os.path.basename(path))[0]
        session = as_text(whole.get("sessionId")) or name
        items = []
        for number, entry in enumerate(timeline):
            value = as_dict(entry)
            key = as_text(value.get("id")) or str(number)
            record = _record(value)
            record.native_id = f"{session}/{key}"
            items.append(Item(key, number, value=entry, record=record))
        yield Conversation(
            SessionSpec(session), items=items, created_at=as_time(whole.get("startTime"))
        )


def is_session(head: bytes) -> bool:
    return b'"sessionId"' in head and (b'"chatMessages"' in head or b'"timeline"' in head)


def _record(entry: dict[str, Any]) -> Record:
    from sessiond.families.copilot.tools import call  # when something changed

    kind = as_text(entry.get("type")) or "unknown"
    record = Record(kind, ts=as_time(entry.get("timestamp")))
    text = (as_text(entry.get("text")) or "").strip()
    call_id = as_text(entry.get("callId"))
    if kind == "user" and text:
        record.role = "user"
        record.events.append(Event("user", text))
        if title := prompt_title(text):
            record.titles.append(Title(title, TITLE_PROMPT))
    elif kind == "copilot" and text:
        record.role = "assistant"
        record.events.append(Event("assistant", text))
    elif kind in ("tool_call_requested", "tool_call_completed"):
        record.role = "assistant"
        tool = as_text(entry.get("name")) or as_text(entry.get("toolTitle"))
        result = as_dict(entry.get("result"))
        if kind == "tool_call_requested" or not call_id:
            record.events.append(call(tool, entry.get("arguments"), call_id, "/arguments"))
        if kind == "tool_call_completed":
            output = as_text(result.get("log")) or ""
            status = _STATES.get(as_text(result.get("type")) or "", "ok")
            if call_id:
                record.results.append(Result(call_id, output, status, pointer="/result"))
            else:
                record.events[-1].status, record.events[-1].output = status, output
    elif text:
        record.events.append(Event("system", text, label=kind))
    return record
