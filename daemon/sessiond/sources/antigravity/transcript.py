"""Transcripts in plain JSON, for conversations without a database that can be read."""

from __future__ import annotations

import re
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import Event, Record, Result, Retire, SessionSpec
from sessiond.sourcekit.values import as_dict, as_milliseconds, as_text, as_time
from sessiond.sources.antigravity.prompts import chosen_model, read_prompt
from sessiond.sources.antigravity.tools import call, folder_of, status_of, unwrapped

_TIMES = re.compile(r"\A(?:(?:Created|Completed) At: (\S+)\s*\n){1,2}")
_STAMP = re.compile(r"^(Created|Completed) At: (\S+)", re.MULTILINE)
_FAILED = frozenset({"ERROR", "INVALID"})
_STOPPED = frozenset({"CANCELED", "CANCELLED", "INTERRUPTED"})
_UNFINISHED = frozenset({"PENDING", "RUNNING", "GENERATING", "WAITING", "QUEUED"})
_NOTICES = {
    "SYSTEM_MESSAGE": "system",
    "EPHEMERAL_MESSAGE": labels.REMINDER,
    "ERROR_MESSAGE": labels.API_ERROR,
}
_SILENT = frozenset({"CONVERSATION_HISTORY", "CHECKPOINT"})
_WAITING = 64  # calls without their result


class TranscriptParser:
    """Results follow their calls in order, without naming them."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._model: str | None = state.get("model")
        self._waiting: list[str] = state.get("waiting", [])

    def state(self) -> dict[str, Any]:
        return {"model": self._model, "waiting": self._waiting}

    def parse(self, value: dict[str, Any]) -> Record:
        kind = as_text(value.get("type")) or "other"
        step = value.get("step_index")
        record = Record(kind, ts=as_time(value.get("created_at")))
        if isinstance(step, int):
            record.native_id = f"{self._session}/{step}"
            record.retires.append(Retire(record.native_id))
        text = as_text(value.get("content")) or ""
        if kind == "USER_INPUT":
            self._model = chosen_model(text) or self._model
            read_prompt(record, text)
            self._waiting = []
        elif kind == "PLANNER_RESPONSE":
            self._answer(record, value, text)
        elif kind in _NOTICES:
            if text.strip():
                record.events.append(Event("system", text.strip(), label=_NOTICES[kind]))
        elif kind not in _SILENT:
            self._result(record, value, text)
        return record

    def _answer(self, record: Record, value: dict[str, Any], text: str) -> None:
        record.role, record.model = "assistant", self._model
        if thought := (as_text(value.get("thinking")) or "").strip():
            record.events.append(Event("thinking", thought))
        if text.strip():
            record.events.append(Event("assistant", text.strip()))
        calls = value.get("tool_calls")
        made = list[str]()
        for number, one in enumerate(map(as_dict, calls if isinstance(calls, list) else ())):
            call_id = as_text(one.get("id")) or f"{record.native_id}.{number}"
            given = unwrapped(one.get("args"))
            pointer = f"/tool_calls/{number}/args"
            record.events.append(call(as_text(one.get("name")), given, call_id, pointer))
            record.cwd = folder_of(given) or record.cwd
            made.append(call_id)
        self._waiting = [*self._waiting, *made][-_WAITING:]
        if as_text(value.get("status")) in _STOPPED:
            record.events.append(Event("system", "Canceled", label=labels.INTERRUPTED))

    def _result(self, record: Record, value: dict[str, Any], text: str) -> None:
        record.role, status = "user", as_text(value.get("status"))
        if status in _UNFINISHED:
            return
        output = _TIMES.sub("", text)
        if not self._waiting:
            if output.strip():
                record.events.append(Event("system", output.strip(), label=labels.TOOL_RESULT))
            return
        told = status_of(output, failed=status in _FAILED)
        told = "denied" if status in _STOPPED else told
        stamps = {name: as_time(at) for name, at in _STAMP.findall(text[:200])}
        began, ended = stamps.get("Created"), stamps.get("Completed")
        took = as_milliseconds(ended - began) if began and ended else None
        call_id, self._waiting = self._waiting[0], self._waiting[1:]
        record.results.append(Result(call_id, output, told, took, pointer="/content"))
