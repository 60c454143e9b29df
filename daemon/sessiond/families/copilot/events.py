"""Parses each event of a session into one record."""

from __future__ import annotations

from typing import Any, ClassVar

from sess_common.decode import at_pointer
from sess_schema import labels
from sessiond.families.copilot import results
from sessiond.families.copilot.tools import call
from sessiond.sourcekit.base import (
    LINK_META,
    TITLE_AI,
    TITLE_PROMPT,
    Event,
    Link,
    Record,
    SessionSpec,
    Title,
)
from sessiond.sourcekit.ids import scoped
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import OPAQUE, as_dict, as_text, as_time, strings

_REMEMBERED = 64  # calls that may be written twice
_PUT = "cacheCreationInputTokens"
_COMPARED = 200  # characters of a thought
_ROUTED = frozenset({"auto"})  # not a model, but a choice of one
# Who else than a person sends messages with the user role.
_PROGRAMS = (
    *("agent", "autopilot", "command", "hook", "jit", "memory", "notification", "schedule"),
    *("skill", "system", "task"),
)
_DELAYED = ("queued", "steering")
# Kinds of events that say nothing to people, or repeat what others say.
_SILENT = (
    *("assistant.", "auto_mode", "canvas", "capabilities", "command", "custom", "elicitation."),
    *("exit_plan_mode.", "extensions", "external_tool.", "factory", "hook.", "managed_settings"),
    *("mcp", "model.", "pending_messages.", "permission", "sampling.", "session.", "subagent."),
    *("system.message", "tool.", "tool_search.", "tools", "ui", "user_input."),
)
# Where a notice has its text, and its label.
_NOTICES = {
    "session.error": ("/message", labels.API_ERROR),
    "session.warning": ("/message", "warning"),
    "session.info": ("/message", "info"),
    "session.handoff": ("/summary", labels.CONTINUED),
    "abort": ("/reason", labels.INTERRUPTED),
    "skill.invoked": ("/content", "skill"),
    "hook.end": ("/error/message", labels.HOOK_FAILED),
    "system.notification": ("/content", labels.TASK),
}


class EventParser:
    """Reads the events of one session in order."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._model = as_text(state.get("model"))
        self._cwd = as_text(state.get("cwd"))
        self._thought = as_text(state.get("thought"))
        calls, linked = state.get("calls"), state.get("linked")
        self._calls = [*filter(as_text, calls)] if isinstance(calls, list) else []
        self._linked = [*filter(as_text, linked)] if isinstance(linked, list) else []

    def state(self) -> dict[str, Any]:
        kept = {
            "model": self._model,
            "cwd": self._cwd,
            "thought": self._thought,
            "calls": list(self._calls),
            "linked": list(self._linked),
        }
        return {name: value for name, value in kept.items() if value}

    def parse(self, value: dict[str, Any]) -> Record:
        kind, data = as_text(value.get("type")) or "unknown", as_dict(value.get("data"))
        record = Record(
            kind,
            native_id=scoped(self._session, as_text(value.get("id"))),
            parent_id=scoped(self._session, as_text(value.get("parentId"))),
            ts=as_time(value.get("timestamp")),
        )
        if record.ts is None and value.get("timestamp") is not None:
            record.warnings.append("bad timestamp")
        self._read_agent(record, value, data)
        read = self._READERS.get(kind)
        if read is not None:
            read(self, record, data)
        elif kind in _NOTICES:
            place, label = _NOTICES[kind]
            record.say("system", at_pointer(data, place), label)
        elif not kind.startswith(_SILENT):
            if text := "\n".join(strings(data, OPAQUE)).strip():
                record.events.append(Event("system", text, label=kind))
            record.warnings.append("record of an unknown type")
        return record

    def _read_agent(self, record: Record, value: dict[str, Any], data: dict[str, Any]) -> None:
        """Events of a subagent differ by an id only; older ones name the call that started it."""
        started = record.kind == "subagent.started" and as_text(data.get("toolCallId"))
        parent = as_text(data.get("parentToolCallId")) or started or None
        agent = as_text(value.get("agentId")) or as_text(data.get("parentToolCallId"))
        if agent is None:
            return
        record.sidechain, record.subagent, record.cwd = True, agent, self._cwd
        if parent and agent not in self._linked:
            record.links.append(Link(agent, parent, LINK_META))
            self._linked = [*self._linked, agent][-_REMEMBERED:]

    # -- the session

    def _read_start(self, record: Record, data: dict[str, Any]) -> None:
        context = as_dict(data.get("context")) or data
        record.cwd = self._cwd = as_text(context.get("cwd")) or self._cwd
        record.git_branch = as_text(context.get("branch"))
        record.version = as_text(data.get("copilotVersion"))
        self._choose(record, data.get("selectedModel"))

    def _read_model(self, record: Record, data: dict[str, Any]) -> None:
        self._choose(record, data.get("newModel"))

    def _choose(self, record: Record, model: Any) -> None:
        chosen = as_text(model)
        if chosen and chosen not in _ROUTED:
            record.model = self._model = chosen

    def _read_title(self, record: Record, data: dict[str, Any]) -> None:
        if title := prompt_title(as_text(data.get("title")) or ""):
            record.titles.append(Title(title, TITLE_AI))

    def _read_shutdown(self, record: Record, data: dict[str, Any]) -> None:
        used = results.summed(data, self._session)
        if used:
            record.usage, *record.advice = used

    def _read_compaction(self, record: Record, data: dict[str, Any]) -> None:
        if data.get("success") is False:
            record.say("system", data.get("error"), labels.ERROR)
            return
        record.events.append(Event("system", "Conversation compacted", label=labels.COMPACT))
        if summary := as_text(data.get("summaryContent")):
            record.events.append(Event("summary", summary, label=labels.COMPACT))

    # -- messages

    def _read_prompt(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "user"
        text, sender = as_text(data.get("content")) or "", as_text(data.get("source")) or ""
        injected = sender.startswith(_PROGRAMS) or data.get("isAutopilotContinuation") is True
        if injected and not record.sidechain:
            record.say("system", text, sender.partition("-")[0] or "continue")
            return
        images = _images(data.get("attachments"))
        if not text and not images:
            return
        label = labels.QUEUED if data.get("delivery") in _DELAYED else None
        record.events.append(Event("user", text or "[image]", label=label, images=images))
        if title := prompt_title(text):
            record.titles.append(Title(title, TITLE_PROMPT))

    def _read_answer(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "assistant"
        self._choose(record, data.get("model"))
        self._think(record, data.get("reasoningText"))
        if text := (as_text(data.get("content")) or "").strip():
            record.events.append(Event("assistant", text))
        requests = data.get("toolRequests")
        for number, request in enumerate(requests if isinstance(requests, list) else ()):
            if isinstance(request, dict):
                place = f"/data/toolRequests/{number}/arguments"
                self._call(record, request, request.get("name"), place)
            else:
                record.warnings.append(f"call {number} is not an object")
        if data.get("outputTokens") and not record.sidechain:
            key = as_text(data.get("apiCallId")) or as_text(data.get("messageId"))
            record.usage = results.usage_of(
                f"{self._session}/{key or record.native_id}",
                as_text(data.get("model")) or self._model,
                [0, 0, 0],
                data["outputTokens"],
                0,
            )
            record.usage.fallback = results.SAID

    def _read_usage(self, record: Record, data: dict[str, Any]) -> None:
        record.usage = results.usage_of(
            record.native_id or "",
            as_text(data.get("model")) or self._model,
            [data.get(name) for name in ("inputTokens", "cacheReadTokens", _PUT)],
            data.get("outputTokens"),
            data.get("reasoningTokens"),
        )
        record.usage.fallback = results.SUMMED

    def _read_thought(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "assistant"
        self._think(record, data.get("content"))

    def _think(self, record: Record, thought: Any) -> None:
        """Reasoning may be written as an event and once more in its message."""
        text = (as_text(thought) or "").strip()
        if not text:
            return
        before, self._thought = self._thought, f"{record.kind} {text[:_COMPARED]}"
        if before and before != self._thought and before.endswith(f" {text[:_COMPARED]}"):
            self._thought = None
        else:
            record.events.append(Event("thinking", text))

    # -- calls

    def _read_call(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "assistant"
        self._choose(record, data.get("model"))
        self._call(record, data, data.get("toolName"), "/data/arguments")

    def _call(self, record: Record, data: dict[str, Any], tool: Any, place: str) -> None:
        """A call is written when it is requested and when it starts, in either order."""
        call_id, server = as_text(data.get("toolCallId")), as_text(data.get("mcpServerName"))
        if call_id in self._calls:
            return
        if call_id:
            self._calls = [*self._calls, call_id][-_REMEMBERED:]
        record.events.append(call(as_text(tool), data.get("arguments"), call_id, place, server))

    def _read_result(self, record: Record, data: dict[str, Any]) -> None:
        record.role = "user"
        if call_id := as_text(data.get("toolCallId")):
            record.results.append(results.result_of(data, call_id))

    def _read_subagent(self, record: Record, data: dict[str, Any]) -> None:
        name = as_text(data.get("agentDisplayName")) or as_text(data.get("agentName"))
        if name and record.sidechain:
            record.titles.append(Title(name, TITLE_AI))
        record.say("system", data.get("error"), labels.ERROR)

    _READERS: ClassVar = {
        "session.start": _read_start,
        "session.resume": _read_start,
        "session.context_changed": _read_start,
        "session.model_change": _read_model,
        "session.title_changed": _read_title,
        "session.shutdown": _read_shutdown,
        "session.compaction_complete": _read_compaction,
        "user.message": _read_prompt,
        "assistant.message": _read_answer,
        "assistant.reasoning": _read_thought,
        "assistant.usage": _read_usage,
        "tool.user_requested": _read_call,
        "tool.execution_start": _read_call,
        "tool.execution_complete": _read_result,
        "subagent.started": _read_subagent,
        "subagent.failed": _read_subagent,
    }


def _images(attachments: Any) -> int:
    return sum(
        (as_text(as_dict(one).get("mimeType")) or "").startswith("image/")
        for one in (attachments if isinstance(attachments, list) else ())
    )
