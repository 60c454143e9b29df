"""The log that the extension writes to find faults: exact tokens, and what no other file has."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.families.copilot.results import STORED, usage_of
from sessiond.families.copilot.tools import call
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, SessionSpec, Title
from sessiond.sourcekit.content import result_text
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_dict, as_milliseconds, as_text, as_time


class TraceParser:
    """Reads one entry at a time; entries do not depend on each other."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._is_subagent = spec.kind == "subagent"  # whose events the session has
        self._count = state.get("count") if isinstance(state.get("count"), int) else 0

    def state(self) -> dict[str, Any]:
        return {"count": self._count}

    def parse(self, value: dict[str, Any]) -> Record:
        self._count = (self._count or 0) + 1
        kind, attrs = as_text(value.get("type")) or "unknown", as_dict(value.get("attrs"))
        record = Record(kind, native_id=f"{self._session}/trace/{self._count}")
        record.ts = as_time(value.get("ts"))
        if kind == "llm_request":
            self._read_request(record, value, attrs)
        elif self._is_subagent:
            return record
        elif kind == "user_message":
            self._read_prompt(record, attrs)
        elif kind == "agent_response":
            record.role = "assistant"
            text = _text(attrs.get("response") or attrs.get("content"))
            if text:
                record.events.append(Event("assistant", text))
        elif kind == "tool_call":
            self._read_call(record, value, attrs)
        return record

    def _read_prompt(self, record: Record, attrs: dict[str, Any]) -> None:
        record.role = "user"
        if text := _text(attrs.get("content")):
            record.events.append(Event("user", text))
            if title := prompt_title(text):
                record.titles.append(Title(title, TITLE_PROMPT))

    def _read_call(self, record: Record, value: dict[str, Any], attrs: dict[str, Any]) -> None:
        record.role = "assistant"
        event = call(as_text(value.get("name")), attrs.get("args"), None, "/attrs/args")
        event.output = _text(attrs.get("result")) or _text(attrs.get("error"))
        event.status = "error" if value.get("status") == "error" else "ok"
        event.duration_ms = as_milliseconds(value.get("dur"))
        record.events.append(event)

    def _read_request(self, record: Record, value: dict[str, Any], attrs: dict[str, Any]) -> None:
        if error := _text(attrs.get("error")):
            record.events.append(Event("system", error, label=labels.API_ERROR))
        record.model = as_text(attrs.get("model"))
        key = as_text(value.get("spanId")) or record.native_id or ""
        record.usage = usage_of(
            f"{self._session}/{key}",
            record.model,
            [attrs.get("inputTokens"), attrs.get("cachedTokens"), 0],
            attrs.get("outputTokens"),
            0,
        )
        record.usage.fallback = STORED


def _text(value: Any) -> str:
    return result_text(value)[0].strip()
