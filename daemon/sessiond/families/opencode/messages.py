"""Messages of both generations: parts in rows of their own, or an answer with all it contains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sess_schema import kinds, labels
from sess_schema.edits import Edit
from sessiond.sourcekit.base import LINK_RESULT, Event, Link, Record, Usage
from sessiond.sourcekit.toolbox import Toolbox, event_of, one_line
from sessiond.sourcekit.values import (
    as_count,
    as_dict,
    as_dollars,
    as_list,
    as_milliseconds,
    as_text,
    as_time,
)

_ABORTED = "MessageAbortedError"
# Parts that mark where steps begin and end, or name what the step left on disk.
_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent"})


def read_message(value: dict[str, Any]) -> Record:
    info = as_dict(value.get("info"))
    role = as_text(info.get("role"))
    record = Record(role or "other", role=role, native_id=as_text(info.get("id")))
    record.parent_id = as_text(info.get("parentID"))
    record.ts = as_time(as_dict(info.get("time")).get("created"))
    record.model = _model(info)
    record.cwd = as_text(info.get("path")) or as_text(as_dict(info.get("path")).get("cwd"))
    parts = list(_parts(value.get("parts"), record))
    if role == "user":
        _read_prompt(record, info, parts)
    else:
        _read_answer(record, info, parts)
    if role not in ("user", "assistant"):
        record.warnings.append("message without a known role")
    return record


def _parts(parts: Any, record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, part in enumerate(as_list(parts)):
        if isinstance(part, dict):
            yield f"/parts/{number}", part
        else:
            record.warnings.append(f"part {number} is not an object")


def _read_prompt(
    record: Record, info: dict[str, Any], parts: list[tuple[str, dict[str, Any]]]
) -> None:
    """What a person typed as one prompt, and what the client added as notices."""
    typed, added = list[str](), list[Event]()
    images = 0
    for _, part in parts:
        kind, text = as_text(part.get("type")), as_text(part.get("text"))
        if kind == "text":
            if not text:
                continue
            if part.get("synthetic") is True or part.get("ignored") is True:
                added.append(Event("system", text.strip(), label=labels.CONTEXT))
            else:
                typed.append(text)
        elif kind == "file":
            images += (as_text(part.get("mime")) or "").startswith("image/")
        elif kind == "subtask":
            typed.append(as_text(part.get("prompt")) or as_text(part.get("description")) or "")
        elif kind == "compaction":
            added.append(Event("system", "Conversation compacted", label=labels.COMPACT))
        elif kind not in _SILENT:
            record.warnings.append(f"part of an unknown type: {kind}")
    if not parts:  # the first versions kept only a summary of a prompt
        typed.append(as_text(as_dict(info.get("summary")).get("title")) or "")
    text = "\n".join(typed).strip()
    if text or images:
        record.events.append(Event("user", text, images=images))
    record.events += added


def _read_answer(
    record: Record, info: dict[str, Any], parts: list[tuple[str, dict[str, Any]]]
) -> None:
    is_summary = info.get("summary") is True
    steps = []
    for place, part in parts:
        kind, text = as_text(part.get("type")), (as_text(part.get("text")) or "").strip()
        if kind == "text":
            if text:
                record.events.append(_said(text, part, is_summary=is_summary))
        elif kind == "reasoning":
            if text:
                record.events.append(Event("thinking", text))
        elif kind == "tool":
            event = first_call(part, place)
            record.events.append(event)
            record.links += links_of(part, event)
        elif kind == "step-finish":
            steps.append(part)
        elif kind == "retry":
            record.events.append(_failure(as_dict(part.get("error"))))
        elif kind == "file":
            if (as_text(part.get("mime")) or "").startswith("image/"):
                record.events.append(Event("assistant", "", images=1))
        elif kind == "compaction":
            record.say("system", "Conversation compacted", labels.COMPACT)
        elif kind not in _SILENT:
            record.warnings.append(f"part of an unknown type: {kind}")
    if isinstance(info.get("error"), dict):
        record.events.append(_failure(info["error"]))
    record.usage = usage_of(info, steps, record)


def _said(text: str, part: dict[str, Any], *, is_summary: bool) -> Event:
    if is_summary:
        return Event("summary", text, label=labels.COMPACT)
    if part.get("synthetic") is True or part.get("ignored") is True:
        return Event("system", text, label=labels.CONTEXT)
    return Event("assistant", text)


def _failure(error: dict[str, Any]) -> Event:
    name, data = as_text(error.get("name")) or "", as_dict(error.get("data"))
    text = as_text(data.get("message")) or as_text(error.get("message")) or name
    label = labels.INTERRUPTED if name == _ABORTED else labels.API_ERROR
    return Event("system", text, label=label)


def _model(info: dict[str, Any]) -> str | None:
    if info.get("role") == "user":
        return None  # the model that was chosen, not one that answered
    model = as_dict(info.get("model"))
    return as_text(info.get("modelID")) or as_text(model.get("modelID")) or as_text(model.get("id"))


# -- the second generation: typed rows, an answer with everything it contains

_INJECTED = {
    "synthetic": labels.CONTEXT,
    "system": labels.CONTEXT,
    "skill": "skill",
}
_SILENT_ENTRIES = frozenset({"agent-switched", "model-switched", "location-switched", "idle"})
_STOPPED = ("abort", "interrupt", "cancel")


def read_entry(value: dict[str, Any]) -> Record:
    kind = as_text(value.get("type")) or "other"
    record = Record(kind, role=kind, native_id=as_text(value.get("id")))
    record.ts = as_time(as_dict(value.get("time")).get("created"))
    if kind == "user":
        _read_entry_prompt(record, value)
    elif kind == "assistant":
        _read_entry_answer(record, value)
    elif kind == "shell":
        _read_shell(record, value)
    elif kind == "compaction":
        _read_compaction(record, value)
    elif kind in _INJECTED:
        record.say("system", value.get("text"), _INJECTED[kind])
    elif kind == "location-switched":
        record.cwd = as_text(as_dict(value.get("location")).get("directory"))
    elif kind not in _SILENT_ENTRIES:
        record.warnings.append(f"record of an unknown type: {kind}")
    return record


def _read_entry_prompt(record: Record, value: dict[str, Any]) -> None:
    images = sum(
        (as_text(as_dict(file).get("mime")) or "").startswith("image/")
        for file in as_list(value.get("files"))
    )
    text = (as_text(value.get("text")) or "").strip()
    if text or images:
        record.events.append(Event("user", text, images=images))


def _read_entry_answer(record: Record, value: dict[str, Any]) -> None:
    model = as_dict(value.get("model"))
    record.model = as_text(model.get("id")) or as_text(model.get("modelID"))
    content = value.get("content")
    for number, part in enumerate(as_list(content)):
        kind = as_text(as_dict(part).get("type"))
        if kind == "tool":
            event = second_call(part, f"/content/{number}")
            record.events.append(event)
            record.links += links_of(part, event)
        elif kind in ("text", "reasoning"):
            text = (as_text(part.get("text")) or "").strip()
            said = "assistant" if kind == "text" else "thinking"
            if text and part.get("synthetic") is True:
                record.events.append(Event("system", text, label=labels.CONTEXT))
            elif text:
                record.events.append(Event(said, text))
        else:
            record.warnings.append(f"content of an unknown type: {kind}")
    if isinstance(value.get("error"), dict):
        record.events.append(_entry_failure(value["error"]))
    record.usage = usage_of(value, (), record)


def _read_shell(record: Record, value: dict[str, Any]) -> None:
    """A command that a person ran."""
    if command := as_text(value.get("command")):
        record.events.append(Event("user", command, label=labels.BASH))
    output = value.get("output")
    text = as_text(output) or as_text(as_dict(output).get("text")) or ""
    text = text or as_text(as_dict(output).get("output")) or ""
    if text:
        record.events.append(Event("system", text, label=labels.BASH_OUTPUT))


def _read_compaction(record: Record, value: dict[str, Any]) -> None:
    record.model = as_text(as_dict(value.get("model")).get("id"))
    record.say("summary", value.get("summary"), labels.COMPACT)
    if isinstance(value.get("error"), dict):
        record.events.append(_entry_failure(value["error"]))
    record.usage = usage_of(value, (), record)


def _entry_failure(error: dict[str, Any]) -> Event:
    kind = as_text(error.get("type")) or ""
    stopped = any(word in kind.casefold() for word in _STOPPED)
    label = labels.INTERRUPTED if stopped else labels.API_ERROR
    return Event("system", as_text(error.get("message")) or kind, label=label)


# -- calls, which contain their results

TOOLS = Toolbox(
    {
        kinds.SHELL: ("bash", "shell", "execute", "interactive_terminal"),
        kinds.READ: ("read", "read_file"),
        kinds.WRITE: ("write",),
        kinds.EDIT: ("edit", "multiedit", "patch", "apply_patch"),
        kinds.SEARCH: ("glob", "grep", "list", "codesearch", "codebase_search", "semantic_search"),
        kinds.FETCH: ("webfetch", "websearch"),
        kinds.AGENT: ("task", "subagent", "agent_manager"),
        kinds.PLAN: ("todowrite", "todoread", "plan_enter", "plan_exit"),
        kinds.QUESTION: ("question", "suggest"),
    }
)
_PLAIN = frozenset({"background_process", "session_move"})  # names like those of MCP servers
_INVALID = "invalid"  # a call that no tool accepted
_ENDED = frozenset({"completed", "success"})
# A person or a rule refused the call, or stopped it.
_REFUSED = re.compile(
    r"rejected permission|dismissed this question|prevents you from using this"
    r"|\A(?:Error: )?Permission denied|Tool execution (?:aborted|was interrupted)"
    r"|interrupted by user",
    re.IGNORECASE,
)
_REFUSALS = ("permission.", "question.", "aborted", "interrupted", "cancelled", "tool.interrupted")


def first_call(part: dict[str, Any], place: str) -> Event:
    """A call as the first generation stores it: a part with its state."""
    state, tool = as_dict(part.get("state")), as_text(part.get("tool"))
    facts = as_dict(state.get("metadata"))
    event = _event(tool, state, facts, as_text(part.get("callID")), place)
    error = as_text(state.get("error")) or ""
    output = state.get("output")
    event.output = (
        output if isinstance(output, str) else error or as_text(facts.get("output")) or ""
    )
    event.status = _status(tool, state.get("status"), facts, error)
    event.images = _images(state.get("attachments"))
    times = as_dict(state.get("time"))
    event.duration_ms = _between(times.get("start"), times.get("end"))
    return event


def second_call(part: dict[str, Any], place: str) -> Event:
    """A call as the second generation stores it: an element of an answer."""
    state, tool = as_dict(part.get("state")), as_text(part.get("name"))
    facts = as_dict(state.get("metadata")) or as_dict(state.get("structured"))
    event = _event(tool, state, facts, as_text(part.get("id")), place)
    failure = as_dict(state.get("error"))
    content = state.get("content")
    texts = [text for piece in as_list(content) if (text := as_text(as_dict(piece).get("text")))]
    error = as_text(failure.get("message")) or ""
    event.output = "\n".join(texts) or error
    refused = (as_text(failure.get("type")) or "").startswith(_REFUSALS)
    event.status = "denied" if refused else _status(tool, state.get("status"), facts, error)
    event.images = _images(content)
    times = as_dict(part.get("time"))
    event.duration_ms = _between(times.get("ran"), times.get("completed"))
    return event


def links_of(part: dict[str, Any], event: Event) -> list[Link]:
    """The session of the subagent that a call started."""
    state = as_dict(part.get("state"))
    for facts in (as_dict(state.get("metadata")), as_dict(state.get("structured"))):
        session = as_text(facts.get("sessionId")) or as_text(facts.get("sessionID"))
        if session and event.call_id and event.kind == kinds.AGENT:
            return [Link(session, event.call_id, LINK_RESULT, home="")]
    return []


def _event(
    tool: str | None, state: dict[str, Any], facts: dict[str, Any], call_id: str | None, place: str
) -> Event:
    given = state.get("input")
    kind = TOOLS.kind(tool)
    if kind == kinds.OTHER and tool and "_" in tool and tool not in _PLAIN:
        kind = kinds.MCP  # SERVER_TOOL
    edits = tuple(_edits(facts)) if kind in (kinds.EDIT, kinds.WRITE) else ()
    described = TOOLS.describe(tool, given, kind, edits)
    if tool == _INVALID:
        asked = as_dict(given)
        words = (as_text(asked.get("tool")), as_text(asked.get("error")))
        described = described._replace(summary=one_line(": ".join(filter(None, words))))
    return event_of(described, tool, given, call_id, f"{place}/state/input")


def _edits(facts: dict[str, Any]) -> Iterator[Edit]:
    """What a finished call changed, from the patches that it recorded."""
    for one in [facts, *as_list(facts.get("results"))]:
        changed = [as_dict(one).get("filediff")]
        changed += as_list(as_dict(one).get("files"))
        for file in filter(None, map(as_dict, changed)):
            path = next(
                (text for name in ("filePath", "file") if (text := as_text(file.get(name)))), ""
            )
            patch = as_text(file.get("patch")) or as_text(file.get("diff"))
            if not patch and file is as_dict(as_dict(one).get("filediff")):
                patch = as_text(as_dict(one).get("diff"))
            if path and patch:
                yield Edit(path, patch=patch)
            elif path and isinstance(file.get("after"), str):
                yield Edit(path, as_text(file.get("before")) or "", file["after"])


def _status(tool: str | None, status: Any, facts: dict[str, Any], error: str) -> str:
    if status == "error":
        stopped = facts.get("interrupted") is True or _REFUSED.search(error)
        return "denied" if stopped else "error"
    if as_text(status) not in _ENDED:
        return "pending"
    code = facts.get("exit")
    failed = isinstance(code, int) and not isinstance(code, bool) and code != 0
    return "error" if failed or tool == _INVALID or facts.get("timeout") is True else "ok"


def _images(listed: Any) -> int:
    files = as_list(listed)
    return sum((as_text(as_dict(file).get("mime")) or "").startswith("image/") for file in files)


def _between(start: Any, end: Any) -> int | None:
    first, last = as_time(start), as_time(end)
    return as_milliseconds(last - first) if first is not None and last is not None else None


# -- tokens; input is counted without what came from the cache


def usage_of(info: dict[str, Any], steps: Sequence[dict[str, Any]], record: Record) -> Usage | None:
    """The sum of a message's steps; of several, the message itself repeats only the last."""
    counted = [step for step in steps if isinstance(step.get("tokens"), dict)] or [info]
    if not isinstance(counted[0].get("tokens"), dict):
        return None
    uses = [_tokens(step["tokens"]) for step in counted]
    paid = [as_dollars(one.get("cost")) for one in (info, *counted)]
    cost = paid[0] or sum(filter(None, paid[1:]))
    given, said, thought, written, read = map(sum, zip(*uses, strict=True))
    if not any((given, said, written, read)):
        return None
    return Usage(
        message_id=record.native_id,
        model=record.model,
        stop_reason=as_text(info.get("finish")),
        input_tokens=given,
        output_tokens=said,
        cache_write_tokens=written,
        cache_read_tokens=read,
        cost_usd=cost if paid != [None] * len(paid) else None,
        reasoning_tokens=thought,
    )


def _tokens(tokens: dict[str, Any]) -> tuple[int, int, int, int, int]:
    """Input, output with reasoning, reasoning, cache written, cache read."""
    cache = as_dict(tokens.get("cache"))
    read, written = as_count(cache.get("read")), as_count(cache.get("write"))
    given, said = as_count(tokens.get("input")), as_count(tokens.get("output"))
    thought, total = as_count(tokens.get("reasoning")), as_count(tokens.get("total"))
    # Some versions count reasoning as output already; the total tells which.
    included = total and total == given + said + read + written
    return given, said if included else said + thought, thought, written, read
