"""Records of logs: of version 2, and of the command line and the editor since version 3."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import Event, Record, Retire, SessionSpec
from sessiond.sourcekit.values import (
    NAMELESS,
    as_dict,
    as_list,
    as_milliseconds,
    as_text,
    as_time,
    result_text,
    strings,
)
from sessiond.sources.kiro.calls import blocks, call, result

_REMEMBERED = 200  # prompts that may be taken back
_CALLS = 32  # calls that were refused and wait for their result


class Memory:
    """Prompts, and calls that were refused."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self.spec = spec
        self._count: int = state.get("count", 0)
        self._prompts: list[list[Any]] = state.get("prompts", [])  # [position, id]
        self._refused: list[str] = state.get("refused", [])
        self.called_at: int | None = state.get("called_at")  # when the last call was written

    def state(self) -> dict[str, Any]:
        return {
            "count": self._count,
            "prompts": self._prompts,
            "refused": self._refused,
            "called_at": self.called_at,
        }

    def note(self, record: Record) -> None:
        if record.native_id and any(event.type == "user" for event in record.events):
            self._prompts = [*self._prompts, [self._count, record.native_id]][-_REMEMBERED:]
        self._count += 1

    @property
    def prompted(self) -> bool:
        return bool(self._prompts)

    def refuse(self, call_id: str) -> None:
        self._refused = [*self._refused, call_id][-_CALLS:]

    def was_refused(self, call_id: str) -> bool:
        return call_id in self._refused

    def back_to(self, native_id: str) -> Retire:
        """Take back a record and all after it; what is not a known prompt stays itself."""
        known = any(name == native_id for _, name in self._prompts)
        return Retire(native_id, onward=True, after=not known)

    def back_to_position(self, position: int) -> list[Retire]:
        """Take back all from the first prompt that is not before a position in the log."""
        for place, native_id in self._prompts:
            if place >= position:
                return [Retire(native_id, onward=True)]
        return []


class KiroParser(Memory):
    def parse(self, value: dict[str, Any]) -> Record:
        read = _read_payload if isinstance(value.get("payload"), dict) else _read_entry
        record = read(value, self)
        self.note(record)
        return record


# -- the logs that both programs write since version 3

_SILENT = frozenset(
    {
        *("turn_start", "session_event", "usage_summary", "mode_change", "sub_agent_progress"),
        "tool_revert",
    }
)
_HIDDEN = "..."  # instead of a thought that is encrypted
_SYSTEM_PROMPT = ("<identity>", "You are ", "# ")


def _read_payload(value: dict[str, Any], memory: Memory) -> Record:
    payload = as_dict(value.get("payload"))
    kind = as_text(payload.get("type")) or "other"
    record = Record(kind, native_id=as_text(value.get("id")), ts=as_time(value.get("timestamp")))
    if (subagent := as_text(payload.get("subExecutionId"))) and subagent != memory.spec.native_id:
        record.session = subagent
    reader = _READERS.get(kind)
    if reader is not None:
        reader(record, payload, memory)
    elif kind not in _SILENT:
        record.warnings.append("record of an unknown type")
        record.say("system", "\n".join(strings(payload, NAMELESS)), kind)
    return record


# -- what was said


def _user(record: Record, payload: dict[str, Any], _: Memory) -> None:
    record.role = "user"
    text, images = result_text(payload.get("content"))
    images += len(as_list(payload.get("images")))
    source = payload.get("source")
    told = as_dict(as_dict(as_dict(payload.get("_meta")).get("kiro")).get("notification"))
    if source == "hook" or told or payload.get("kind"):
        record.say("system", text, "hook" if source == "hook" else labels.TASK)
    elif (text := text.strip()) or images:
        label = labels.QUEUED if source == "steer" else None
        record.ask(text, images, label=label)
    for item in map(as_dict, as_list(payload.get("contextItems"))):
        record.say("system", item.get("content"), labels.CONTEXT)


def _start(record: Record, payload: dict[str, Any], memory: Memory) -> None:
    """What the model is told first; early versions had the first prompt here instead."""
    text, _ = result_text(payload.get("content"))
    text = text.strip()
    told = payload.get("forcedRole") is True or text.startswith(_SYSTEM_PROMPT)
    if told or memory.prompted:
        record.say("system", text, labels.CONTEXT)
    else:
        _user(record, payload, memory)


def _assistant(record: Record, payload: dict[str, Any], _: Memory) -> None:
    record.role = "assistant"
    model = (as_text(payload.get("reasoningModelId")) or "").rpartition("::")[2]
    record.model = model if model != "auto" else None
    text = result_text(payload.get("content"))[0].strip()
    operation = payload.get("operationType")
    if not text:
        return
    if operation == "Reasoning":
        if text != _HIDDEN:
            record.events.append(Event("thinking", text))
    elif operation == "Summary":
        record.events.append(Event("summary", text, label=labels.COMPACT))
    else:
        record.events.append(Event("assistant", text))


# -- calls


def _call(record: Record, payload: dict[str, Any], memory: Memory) -> None:
    record.role = "assistant"
    call_id = as_text(payload.get("toolCallId"))
    if call_id and payload.get("status") == "denied":
        memory.refuse(call_id)
    memory.called_at = record.ts
    record.events.append(
        call(as_text(payload.get("toolName")), payload.get("args"), call_id, "/payload/args")
    )


def _result(record: Record, payload: dict[str, Any], memory: Memory) -> None:
    record.role = "user"
    call_id = as_text(payload.get("toolCallId"))
    if call_id is None:
        return
    text, images = result_text(payload.get("content"))
    failed = payload.get("success") is False
    outcome = result(call_id, text, failed=failed, images=images, pointer="/payload/content")
    outcome.duration_ms = as_milliseconds(payload.get("durationMs"))
    forbidden = as_dict(as_dict(payload.get("_meta")).get("kiro")).get("policyDenial")
    if memory.was_refused(call_id) or forbidden:
        outcome.status = "denied"
    record.results.append(outcome)
    if record.ts == memory.called_at:  # written together, when the call was over
        record.ts = None


def _question(record: Record, payload: dict[str, Any], _: Memory) -> None:
    if payload.get("interactionType") == "user_input":
        record.say("system", payload.get("question"), "question")


def _answer(_: Record, payload: dict[str, Any], memory: Memory) -> None:
    chosen, call_id = as_text(payload.get("selectedOption")) or "", payload.get("toolCallId")
    if "reject" in chosen and isinstance(call_id, str):
        memory.refuse(call_id)


def _subagent(record: Record, payload: dict[str, Any], _: Memory) -> None:
    record.role = "assistant"
    child = as_text(payload.get("subSessionId"))
    given = {
        "agent": payload.get("subAgentName"),
        "description": payload.get("explanation"),
        "prompt": payload.get("prompt"),
    }
    given = {name: text for name, text in given.items() if as_text(text)}
    event = call("sub_agent", given, child, "/payload/prompt")
    record.events.append(event)
    if child:
        record.link(child, child, home="")


def _returned(record: Record, payload: dict[str, Any], _: Memory) -> None:
    record.role = "user"
    child, status = as_text(payload.get("subSessionId")), payload.get("status")
    if child is None:
        return
    said, problem = as_text(payload.get("response")), as_text(payload.get("errorMessage"))
    outcome = result(
        child,
        "\n".join(filter(None, (said, problem))),
        failed=status == "error",
        images=0,
        pointer="/payload/response",
    )
    outcome.status = "denied" if status == "cancelled" else outcome.status
    record.results.append(outcome)


# -- what happened


def _end(record: Record, payload: dict[str, Any], _: Memory) -> None:
    reason = payload.get("stopReason")
    refusal = as_dict(as_dict(payload.get("stopDetails")).get("refusal"))
    if reason == "cancelled":
        record.say("system", "Canceled", labels.INTERRUPTED)
    elif reason == "refusal":
        record.say("system", refusal.get("explanation") or "refused", labels.API_REFUSAL)
    elif reason == "error":
        record.say("system", "The turn failed", labels.API_ERROR)


def _tombstone(record: Record, payload: dict[str, Any], memory: Memory) -> None:
    start = as_text(payload.get("effectiveFromMessageId"))
    if payload.get("kind") == "checkpoint_revert" and start:
        record.retires.append(memory.back_to(start))


def _metadata(record: Record, payload: dict[str, Any], _: Memory) -> None:
    label = {"displayError": labels.API_ERROR, "recap": labels.AWAY_SUMMARY}.get(
        as_text(payload.get("key")) or ""
    )
    if label:
        record.say("system", "\n".join(strings(payload.get("value"))), label)


def _hook(record: Record, payload: dict[str, Any], _: Memory) -> None:
    names = ("name", "command", "output")
    text = "\n".join(filter(None, (as_text(payload.get(name)) for name in names)))
    failed = payload.get("status") == "failed"
    record.say("system", text, labels.HOOK_FAILED if failed else "hook")


def _steering(record: Record, payload: dict[str, Any], _: Memory) -> None:
    for document in map(as_dict, as_list(payload.get("documents"))):
        texts = (as_text(document.get(name)) for name in ("displayName", "content"))
        record.say("system", "\n".join(filter(None, texts)), labels.NESTED_MEMORY)


def _error(record: Record, payload: dict[str, Any], _: Memory) -> None:
    record.say("system", payload.get("message"), labels.ERROR)


def _note(record: Record, payload: dict[str, Any], _: Memory) -> None:
    record.say("system", result_text(payload.get("content"))[0], record.kind)


_READERS = {
    "user": _user,
    "session_start": _start,
    "assistant": _assistant,
    "tool_call": _call,
    "tool_result": _result,
    "pending_interaction": _question,
    "interaction_resolved": _answer,
    "sub_agent_start": _subagent,
    "sub_agent_complete": _returned,
    "turn_end": _end,
    "tombstone": _tombstone,
    "session_metadata": _metadata,
    "ContextualHookInvoked": _hook,
    "steering_inclusion": _steering,
    "error": _error,
    "system": _note,
    "agent_note": _note,
}


# -- the logs of version 2

_NAMING = "You are a session naming agent"


def _read_entry(value: dict[str, Any], memory: Memory) -> Record:
    kind = as_text(value.get("kind")) or "other"
    data = as_dict(value.get("data"))
    record = Record(kind, native_id=as_text(data.get("message_id")))
    record.ts = as_time(as_dict(data.get("meta")).get("timestamp"))
    if kind == "Prompt":
        record.role = "user"
        _read_prompt(record, data)
    elif kind == "AssistantMessage":
        record.role = "assistant"
        _read_answer(record, data)
    elif kind == "ToolResults":
        record.role = "user"
        _read_results(record, data, memory)
    elif kind == "Compaction":
        if summary := as_text(data.get("summary")):
            record.events.append(Event("summary", summary, label=labels.COMPACT))
    elif kind == "Clear":
        record.say("system", "Context cleared", "clear")
    elif kind == "CancelledPrompt":
        record.say("system", "Canceled", labels.INTERRUPTED)
    elif kind == "ResetTo":
        position = data.get("target_index")
        record.retires += memory.back_to_position(position) if isinstance(position, int) else []
    else:
        record.warnings.append("entry of an unknown kind")
        if text := "\n".join(strings(data)):
            record.events.append(Event("system", text, label=kind))
    return record


def _parts(data: dict[str, Any]) -> list[tuple[int, str, Any]]:
    return [
        (number, as_text(part.get("kind")) or "", part.get("data"))
        for number, part in enumerate(as_list(data.get("content")))
        if isinstance(part, dict)
    ]


def _read_prompt(record: Record, data: dict[str, Any]) -> None:
    parts = _parts(data)
    text = "".join(value for _, kind, value in parts if kind == "text" and isinstance(value, str))
    images = sum(kind == "image" for _, kind, _ in parts)
    text = text.strip()
    if text.startswith(_NAMING):
        record.events.append(Event("system", text, label=labels.CONTEXT))
    elif text or images:
        record.ask(text, images)


def _read_answer(record: Record, data: dict[str, Any]) -> None:
    for number, kind, value in _parts(data):
        if kind == "text":
            if isinstance(value, str) and value.strip():
                record.events.append(Event("assistant", value.strip()))
        elif kind == "thinking":
            record.model = as_text(as_dict(value).get("modelId")) or record.model
            record.say("thinking", as_dict(value).get("text"))
        elif kind in ("toolUse", "tooluse"):
            use = as_dict(value)
            pointer = f"/data/content/{number}/data/input"
            name, call_id = as_text(use.get("name")), as_text(use.get("toolUseId"))
            record.events.append(call(name, use.get("input"), call_id, pointer))
        elif kind != "image":
            record.warnings.append(f"part of an unknown kind: {kind}")


def _read_results(record: Record, data: dict[str, Any], memory: Memory) -> None:
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
        outcome = result(call_id, text, failed=failed, images=images, pointer=pointer)
        canceled = as_dict(details.get(call_id)).get("result") == "Cancelled"
        if canceled or memory.was_refused(call_id):
            outcome.status = "denied"
        record.results.append(outcome)
