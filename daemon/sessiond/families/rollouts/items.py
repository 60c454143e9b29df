"""Reads response items, the model's input and output, and client events, which repeat some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sess_schema import labels
from sessiond.families.rollouts.calls import SPAWN, Outcomes, describe, spawned, tool_result
from sessiond.families.rollouts.prompts import images_of, joined, read_prompt
from sessiond.sourcekit.base import TITLE_SUMMARY, Event, Record, Retire, Title
from sessiond.sourcekit.toolbox import arguments_in
from sessiond.sourcekit.values import OPAQUE, as_count, as_dict, as_list, as_text, strings

_SILENT_ITEMS = frozenset(
    {
        *("additional_tools", "compaction", "compaction_summary", "compaction_trigger"),
        *("configuration_update", "context_compaction", "ghost_snapshot"),
    }
)
_METADATA = ("internal_chat_message_metadata_passthrough", "metadata")
_HIDDEN = frozenset((*OPAQUE, "id", "type", "call_id", "result", "image_url"))
_ACTION_TYPE, _NOTHING = frozenset({"type"}), frozenset[str]()
_INPUTS = ("arguments", "input", "action")


def read_item(record: Record, item: dict[str, Any], place: str, outcomes: Outcomes) -> None:
    """Add the content of an item to the record; `place` is the JSON pointer to it."""
    kind = as_text(item.get("type")) or ("message" if "role" in item else "")
    record.kind = kind or record.kind
    special = _READERS.get(kind)
    if special is not None:
        special(record, item, place)
    elif kind in _SILENT_ITEMS:
        return
    elif kind.endswith(("_call", "_call_request")):
        _read_call(record, item, place)
        outcomes.begin(record.events[-1])
    elif kind.endswith(("_output", "_result")):
        _read_output(record, item, place, outcomes)
    else:
        text = "\n".join(strings(item, _HIDDEN)).strip()
        record.say("system", text, kind or "item")


def _read_message(record: Record, item: dict[str, Any], _place: str) -> None:
    record.role = as_text(item.get("role"))
    content = item.get("content")
    if record.role == "user":
        read_prompt(record, content, _marks(item))
        return
    text, images = joined(content), images_of(content)
    if not text and not images:
        return
    if record.role == "assistant":
        record.events.append(Event("assistant", text or "[image]", images=images))
    else:
        record.events.append(Event("system", text, label=record.role or "message"))


def _marks(item: dict[str, Any]) -> Any:
    """The kinds of a message's content, wherever a release wrote them."""
    for facts in (item, *(as_dict(item.get(name)) for name in _METADATA)):
        if facts.get("content_item_kinds"):
            return facts["content_item_kinds"]
    return None


def _read_reasoning(record: Record, item: dict[str, Any], _place: str) -> None:
    texts = dict.fromkeys((joined(item.get("summary")), joined(item.get("content"))))
    text = "\n\n".join(filter(None, texts))
    if text:
        record.role = "assistant"
        record.events.append(Event("thinking", text))


def _read_agent_message(record: Record, item: dict[str, Any], _place: str) -> None:
    """A message from one agent to another."""
    text = joined(item.get("content"))
    record.say("system", text, "agent_message")


def _read_web_search(record: Record, item: dict[str, Any], place: str) -> None:
    """Searches have no output: the provider keeps the results."""
    _read_call(record, item, place, "web_search")
    record.events[-1].call_id = None
    record.events[-1].status = "error" if item.get("status") == "failed" else "ok"


def _read_image(record: Record, item: dict[str, Any], place: str) -> None:
    text = as_text(item.get("revised_prompt")) or ""
    event = Event("tool_use", tool="image_generation", status="ok", input=text, images=1)
    described = describe("image_generation", text)
    event.kind, event.summary = described.kind, described.summary
    event.pointer = f"{place}/revised_prompt"
    record.role = "assistant"
    record.events.append(event)


def _read_local_shell(record: Record, item: dict[str, Any], place: str) -> None:
    """A shell that the model's provider offers; its output may be missing."""
    _read_call(record, item, place, "local_shell")


def _read_call(record: Record, item: dict[str, Any], place: str, tool: str | None = None) -> None:
    tool = tool or _tool(item)
    name = next((name for name in _INPUTS if item.get(name) is not None), _INPUTS[0])
    given = arguments_in(item.get(name))
    described = describe(tool, given)
    record.role = "assistant"
    record.events.append(
        Event(
            "tool_use",
            tool=tool,
            status="pending",
            summary=described.summary,
            input="\n".join(strings(given, _ACTION_TYPE if name == "action" else _NOTHING)),
            call_id=as_text(item.get("call_id")) or as_text(item.get("id")),
            pointer=f"{place}/{name}",
            files=described.files,
            kind=described.kind,
            edits=described.edits,
        )
    )


def _tool(item: dict[str, Any]) -> str | None:
    name = as_text(item.get("name")) or as_text(as_dict(item.get("function")).get("name"))
    server = as_text(item.get("namespace"))
    if name and server and server.startswith("mcp__") and not name.startswith("mcp__"):
        return f"{server.rstrip('_')}__{name}"
    return name or (as_text(item.get("type")) or "").removesuffix("_call") or None


def _read_output(record: Record, item: dict[str, Any], place: str, outcomes: Outcomes) -> None:
    name = next((name for name in ("output", "tools", "result") if name in item), "output")
    call_id = as_text(item.get("call_id"))
    tool, outcome = outcomes.take(call_id) if call_id else (None, (None, None))
    result = tool_result(call_id or "", item.get(name), f"{place}/{name}", outcome)
    record.role = "user"
    if call_id:
        record.results.append(result)
        child = spawned(result.output) if tool == SPAWN else None
        if child:
            record.link(child, call_id, home="")
    elif result.output.strip():
        record.events.append(Event("system", result.output.strip(), label=labels.TOOL_RESULT))


_READERS: dict[str, Callable[[Record, dict[str, Any], str], None]] = {
    "message": _read_message,
    "reasoning": _read_reasoning,
    "agent_message": _read_agent_message,
    "web_search_call": _read_web_search,
    "image_generation_call": _read_image,
    "local_shell_call": _read_local_shell,
}


# -- client events: copies of messages, ends of calls, and changes to the thread

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
_SILENT_EVENTS = frozenset(
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
    elif kind not in _SILENT_EVENTS:
        text = next((text for name in _TEXTS if (text := as_text(payload.get(name)))), "")
        _add_event(record, "system", text, _LABELS.get(kind, kind or "event"))


def _read_item(record: Record, item: dict[str, Any], thread: str, outcomes: Outcomes) -> None:
    kind = item.get("type")
    if kind == "SubAgentActivity":
        _read_activity(record, item, item.get("id"))
    elif kind == "CollabAgentToolCall":
        children = item.get("receiver_thread_ids")
        if item.get("tool") == _SPAWN and item.get("sender_thread_id") in (None, thread):
            for child in as_list(children):
                _add_link(record, child, item.get("id"))
    outcomes.note(item.get("id"), item)


def _read_activity(record: Record, activity: dict[str, Any], call: Any) -> None:
    if activity.get("kind") == "started":
        _add_link(record, activity.get("agent_thread_id"), call)


def _add_link(record: Record, child: Any, call: Any) -> None:
    thread, call_id = as_text(child), as_text(call)
    if thread and call_id:
        record.link(thread, call_id, home="")


def _review(output: dict[str, Any]) -> str:
    lines = [as_text(output.get("overall_explanation"))]
    for finding in as_list(output.get("findings")):
        lines += [as_text(as_dict(finding).get(name)) for name in ("title", "body")]
    return "\n".join(line for line in lines if line)


def _add_event(record: Record, kind: str, text: str, label: str | None = None) -> None:
    record.say(kind, text, label)
