"""Records of the logs that the command line, since version 3, and the editor write."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import LINK_RESULT, TITLE_PROMPT, Event, Link, Record, Title
from sessiond.sourcekit.content import NAMELESS, result_text
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_dict, as_milliseconds, as_text, as_time, strings
from sessiond.sources.kiro.memory import Memory
from sessiond.sources.kiro.tools import call, result

_SILENT = frozenset(
    {
        *("turn_start", "session_event", "usage_summary", "mode_change", "sub_agent_progress"),
        "tool_revert",
    }
)
_HIDDEN = "..."  # instead of a thought that is encrypted
_SYSTEM_PROMPT = ("<identity>", "You are ", "# ")


def read(value: dict[str, Any], memory: Memory) -> Record:
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
    listed = payload.get("images")
    images += len(listed) if isinstance(listed, list) else 0
    source = payload.get("source")
    told = as_dict(as_dict(as_dict(payload.get("_meta")).get("kiro")).get("notification"))
    if source == "hook" or told or payload.get("kind"):
        record.say("system", text, "hook" if source == "hook" else labels.TASK)
    elif (text := text.strip()) or images:
        label = labels.QUEUED if source == "steer" else None
        record.events.append(Event("user", text or "[image]", label=label, images=images))
        if title := prompt_title(text):
            record.titles.append(Title(title, TITLE_PROMPT))
    added = payload.get("contextItems")
    for item in map(as_dict, added if isinstance(added, list) else ()):
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
    found = result(call_id, text, failed=failed, images=images, pointer="/payload/content")
    found.duration_ms = as_milliseconds(payload.get("durationMs"))
    forbidden = as_dict(as_dict(payload.get("_meta")).get("kiro")).get("policyDenial")
    if memory.was_refused(call_id) or forbidden:
        found.status = "denied"
    record.results.append(found)
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
        record.links.append(Link(child, child, LINK_RESULT, home=""))


def _returned(record: Record, payload: dict[str, Any], _: Memory) -> None:
    record.role = "user"
    child, status = as_text(payload.get("subSessionId")), payload.get("status")
    if child is None:
        return
    said, problem = as_text(payload.get("response")), as_text(payload.get("errorMessage"))
    found = result(
        child,
        "\n".join(filter(None, (said, problem))),
        failed=status == "error",
        images=0,
        pointer="/payload/response",
    )
    found.status = "denied" if status == "cancelled" else found.status
    record.results.append(found)


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
    listed = payload.get("documents")
    for document in map(as_dict, listed if isinstance(listed, list) else ()):
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
