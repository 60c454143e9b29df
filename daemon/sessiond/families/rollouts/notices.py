"""Reads client events: copies of messages, ends of calls, and changes to the thread."""

from __future__ import annotations

from typing import Any

from sess_schema import labels
from sessiond.families.rollouts.outcomes import Outcomes
from sessiond.families.rollouts.prompts import joined, read_prompt
from sessiond.sourcekit.base import (
    LINK_RESULT,
    TITLE_SUMMARY,
    Event,
    Link,
    Record,
    Retire,
    Title,
)
from sessiond.sourcekit.values import as_count, as_dict, as_text

_MIRRORS = {
    "user_message": "user",
    "UserMessage": "user",
    "agent_message": "assistant",
    "AgentMessage": "assistant",
    "Plan": "assistant",
    "agent_reasoning": "thinking",
    "agent_reasoning_raw_content": "thinking",
    "Reasoning": "thinking",
}
_SPAWN = "spawn_agent"
_ENDS = frozenset(
    {"dynamic_tool_call_response", "exec_command_end", "mcp_tool_call_end", "patch_apply_end"}
)
_SILENT = frozenset(
    {
        *("agent_message_delta", "agent_reasoning_section_break", "background_event"),
        *("collab_agent_interaction_end", "context_compacted", "image_generation_end"),
        *("plan_update", "task_complete", "task_started", "turn_complete", "turn_started"),
        *("web_search_end",),
    }
)
_TEXTS = ("message", "text", "user_facing_hint")
_LABELS = {
    "entered_review_mode": "review",
    "error": labels.API_ERROR,
    "stream_error": labels.ERROR,
    "undo_completed": "undo",
}


def mirrored(payload: dict[str, Any]) -> str | None:
    """The event type of a message that is also written as a response item, else None."""
    kind = payload.get("type")
    if kind == "item_completed":
        kind = as_dict(payload.get("item")).get("type")
    return _MIRRORS.get(kind) if isinstance(kind, str) else None


def read_mirror(record: Record, payload: dict[str, Any], kind: str) -> None:
    item = as_dict(payload.get("item"))
    if kind == "user":
        read_prompt(record, payload.get("message") or item.get("content"))
        return
    texts = (payload.get("message"), payload.get("text"), item.get("text"))
    text = next(filter(None, map(as_text, texts)), "")
    _add_event(record, kind, text or joined(item.get("content") or item.get("summary_text")))


def read_notice(record: Record, payload: dict[str, Any], thread: str, outcomes: Outcomes) -> None:
    kind = as_text(payload.get("type")) or ""
    if kind == "item_completed":
        _read_item(record, as_dict(payload.get("item")), thread, outcomes)
    elif kind in _ENDS:
        outcomes.note(payload.get("call_id"), payload)
    elif kind == "thread_rolled_back":
        turns = as_count(payload.get("num_turns"))
        if turns:
            record.retires.append(Retire(prompts=turns))
    elif kind == "thread_name_updated":
        name = as_text(payload.get("thread_name"))
        if name:
            # Later names are in the list of names only, so that the list is the better source.
            record.titles.append(Title(" ".join(name.split()), TITLE_SUMMARY))
    elif kind == "collab_agent_spawn_end":
        # A fork also has copies of its parent's spawn events.
        if payload.get("sender_thread_id") in (None, thread):
            _add_link(record, payload.get("new_thread_id"), payload.get("call_id"))
    elif kind == "sub_agent_activity":
        _read_activity(record, payload, payload.get("event_id"))
    elif kind == "turn_aborted":
        _add_event(record, "system", as_text(payload.get("reason")) or kind, labels.INTERRUPTED)
    elif kind == "exited_review_mode":
        _add_event(record, "system", _review(as_dict(payload.get("review_output"))), "review")
    elif kind not in _SILENT:
        text = next((text for name in _TEXTS if (text := as_text(payload.get(name)))), "")
        _add_event(record, "system", text, _LABELS.get(kind, kind or "event"))


def _read_item(record: Record, item: dict[str, Any], thread: str, outcomes: Outcomes) -> None:
    kind = item.get("type")
    if kind == "SubAgentActivity":
        _read_activity(record, item, item.get("id"))
    elif kind == "CollabAgentToolCall":
        children = item.get("receiver_thread_ids")
        if item.get("tool") == _SPAWN and item.get("sender_thread_id") in (None, thread):
            for child in children if isinstance(children, list) else ():
                _add_link(record, child, item.get("id"))
    outcomes.note(item.get("id"), item)


def _read_activity(record: Record, activity: dict[str, Any], call: Any) -> None:
    if activity.get("kind") == "started":
        _add_link(record, activity.get("agent_thread_id"), call)


def _add_link(record: Record, child: Any, call: Any) -> None:
    thread, call_id = as_text(child), as_text(call)
    if thread and call_id:
        record.links.append(Link(thread, call_id, LINK_RESULT, home=""))


def _review(output: dict[str, Any]) -> str:
    lines = [as_text(output.get("overall_explanation"))]
    findings = output.get("findings")
    for finding in findings if isinstance(findings, list) else ():
        lines += [as_text(as_dict(finding).get(name)) for name in ("title", "body")]
    return "\n".join(line for line in lines if line)


def _add_event(record: Record, kind: str, text: str, label: str | None = None) -> None:
    if text.strip():
        record.events.append(Event(kind, text.strip(), label=label))
