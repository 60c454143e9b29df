"""Records of Kimi CLI: events of its wire protocol, else messages of the model's context."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import (
    LINK_RESULT,
    TITLE_PROMPT,
    Event,
    Link,
    Record,
    Retire,
    SessionSpec,
    Title,
)
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time, strings
from sessiond.sources.kimi.tools import call, content, counts_of, result, usage_of

_SILENT = frozenset(
    {
        *("ApprovalRequest", "ApprovalRequestResolved", "ApprovalResponse", "CompactionBegin"),
        *("HookResolved", "HookTriggered", "MCPLoadingBegin", "MCPLoadingEnd", "QuestionRequest"),
        *("QuestionResponse", "StepBegin", "ToolCallRequest", "TurnEnd"),
    }
)
_PLACE = "/message/payload"


class CliRecords:
    """Keeps what one record needs of those before it."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._home = spec.home or spec.native_id  # of subagents: the session
        self._open = as_dict(state.get("open"))  # the last call, whose arguments may grow

    def state(self) -> dict[str, Any]:
        return {"open": dict(self._open)} if self._open else {}

    def event(self, value: dict[str, Any], native_id: str | None) -> Record:
        message = as_dict(value.get("message"))
        kind, payload = as_text(message.get("type")) or "unknown", as_dict(message.get("payload"))
        record = Record(kind, native_id=native_id, ts=as_time(value.get("timestamp")))
        place = _PLACE
        if kind == "SubagentEvent":
            inner = as_dict(payload.get("event"))
            self._enter(record, payload)
            if not record.sidechain:
                return record
            kind, payload = as_text(inner.get("type")) or "unknown", as_dict(inner.get("payload"))
            place = f"{_PLACE}/event/payload"
        self._read(record, kind, payload, place)
        return record

    def _enter(self, record: Record, payload: dict[str, Any]) -> None:
        """A subagent with an id has a log of its own; an earlier one has only these events."""
        agent = as_text(payload.get("agent_id"))
        started = as_text(payload.get("parent_tool_call_id") or payload.get("task_tool_call_id"))
        if started:
            record.links.append(Link(agent or started, started, LINK_RESULT, home=self._home))
        if agent is None and started:
            record.sidechain, record.subagent = True, started

    def _read(self, record: Record, kind: str, payload: dict[str, Any], place: str) -> None:
        if kind in ("TurnBegin", "SteerInput"):
            self._prompt(record, payload.get("user_input"), queued=kind == "SteerInput")
        elif kind == "ContentPart":
            self._say(record, payload)
        elif kind == "ToolCall":
            function = as_dict(payload.get("function"))
            given = as_text(function.get("arguments")) or ""
            found = [record.native_id, payload.get("id"), function.get("name"), given]
            self._open = dict(zip(("record", "id", "name", "given"), found, strict=True))
            self._call(record, f"{place}/function/arguments")
        elif kind == "ToolCallPart":
            more = as_text(payload.get("arguments_part"))
            if more and self._open:
                record.retires.append(Retire(as_text(self._open.get("record"))))
                given = (as_text(self._open.get("given")) or "") + more
                self._open = self._open | {"record": record.native_id, "given": given}
                self._call(record, None)  # no single record has the input
        elif kind == "ToolResult":
            self._result(record, payload, place)
        elif kind == "StatusUpdate":
            key = as_text(payload.get("message_id")) or record.native_id or ""
            window = as_count(payload.get("max_context_tokens")) or None
            record.usage = usage_of(key, counts_of(payload.get("token_usage")), None, window)
        elif kind == "CompactionEnd":
            record.events.append(Event("system", "Conversation compacted", label=labels.COMPACT))
        elif kind == "StepInterrupted":
            record.events.append(Event("system", "Interrupted", label=labels.INTERRUPTED))
        elif kind == "Notification":
            texts = (as_text(payload.get(name)) for name in ("title", "body"))
            record.say("system", "\n".join(filter(None, texts)), labels.TASK)
        elif kind == "PlanDisplay":
            record.say("system", payload.get("content"), "plan")
        elif kind not in _SILENT:
            record.say("system", "\n".join(strings(payload)), kind)
            record.warnings.append("record of an unknown type")

    def _prompt(self, record: Record, given: Any, *, queued: bool = False) -> None:
        record.role = "user"
        text, images = content(given)
        if text or images:
            label = labels.QUEUED if queued else None
            record.events.append(Event("user", text or "[image]", label=label, images=images))
            if title := prompt_title(text):
                record.titles.append(Title(title, TITLE_PROMPT))

    def _say(self, record: Record, part: dict[str, Any]) -> None:
        record.role = "assistant"
        thought, text = as_text(part.get("think")), as_text(part.get("text"))
        if thought and thought.strip():
            record.events.append(Event("thinking", thought.strip()))
        elif text and text.strip():
            record.events.append(Event("assistant", text.strip()))

    def _call(self, record: Record, pointer: str | None) -> None:
        record.role = "assistant"
        found = self._open
        record.events.append(call(found.get("name"), found.get("given"), found.get("id"), pointer))

    def _result(self, record: Record, payload: dict[str, Any], place: str) -> None:
        record.role = "user"
        call_id = as_text(payload.get("tool_call_id"))
        returned = as_dict(payload.get("return_value") or payload.get("result"))
        failed = returned.get("is_error") is True
        output, images = content(returned.get("output"))
        message = as_text(returned.get("message")) or ""
        if not output or (failed and message not in output):
            output = f"{output}\n{message}".strip()
        if call_id:
            pointer = f"{place}/return_value"
            record.results.append(
                result(call_id, output, failed=failed, images=images, pointer=pointer)
            )

    # -- the model's context, where no events were written

    def message(self, value: dict[str, Any]) -> Record:
        role = as_text(value.get("role")) or "unknown"
        record = Record(role, role=role if not role.startswith("_") else None)
        given = value.get("content")
        if role == "user":
            self._prompt(record, given)
        elif role == "assistant":
            for part in given if isinstance(given, list) else [{"text": given}]:
                self._say(record, as_dict(part))
            calls = value.get("tool_calls")
            for number, one in enumerate(calls if isinstance(calls, list) else ()):
                function = as_dict(as_dict(one).get("function"))
                pointer = f"/tool_calls/{number}/function/arguments"
                name, arguments = function.get("name"), function.get("arguments")
                record.events.append(call(name, arguments, as_dict(one).get("id"), pointer))
        elif role == "tool":
            output, images = content(given)
            failed = output.startswith("<system>ERROR")
            if call_id := as_text(value.get("tool_call_id")):
                record.results.append(
                    result(call_id, output, failed=failed, images=images, pointer="/content")
                )
        elif not role.startswith("_"):
            record.warnings.append("record of an unknown type")
        return record
