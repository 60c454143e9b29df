"""Reads tool calls, which contain their results: what each one does, its output and status."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sess_schema import kinds
from sess_schema.edits import Edit
from sessiond.sourcekit.base import LINK_RESULT, Event, Link
from sessiond.sourcekit.toolbox import Toolbox, event_of, one_line
from sessiond.sourcekit.values import as_dict, as_milliseconds, as_text, as_time

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
    texts = [
        text
        for piece in (content if isinstance(content, list) else ())
        if (text := as_text(as_dict(piece).get("text")))
    ]
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
    results = facts.get("results")
    for one in [facts, *(results if isinstance(results, list) else ())]:
        changed = [as_dict(one).get("filediff")]
        listed = as_dict(one).get("files")
        changed += listed if isinstance(listed, list) else []
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
    files = listed if isinstance(listed, list) else ()
    return sum((as_text(as_dict(file).get("mime")) or "").startswith("image/") for file in files)


def _between(start: Any, end: Any) -> int | None:
    first, last = as_time(start), as_time(end)
    return as_milliseconds(last - first) if first is not None and last is not None else None
