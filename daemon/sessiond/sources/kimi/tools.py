"""Kimi's tools, and the content that both programs write."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import orjson

from sess_schema import kinds
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Event, Result, Usage
from sessiond.sourcekit.toolbox import Toolbox, event_of
from sessiond.sourcekit.values import as_count, as_dict, as_text

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("Shell", "Bash", "TaskOutput", "TaskStop", "TaskList"),
        kinds.READ: ("ReadFile", "Read", "ReadMediaFile"),
        kinds.WRITE: ("WriteFile", "Write"),
        kinds.EDIT: ("StrReplaceFile", "Edit", "PatchFile"),
        kinds.SEARCH: ("Grep", "Glob"),
        kinds.FETCH: ("SearchWeb", "WebSearch", "FetchURL"),
        kinds.AGENT: ("Task", "Agent", "AgentSwarm", "CreateSubagent"),
        kinds.PLAN: (
            *("SetTodoList", "TodoList", "EnterPlanMode", "ExitPlanMode", "CreateGoal", "GetGoal"),
            *("UpdateGoal", "SetGoalBudget"),
        ),
        kinds.QUESTION: ("AskUserQuestion",),
    }
)
_REFUSED = re.compile(r"(?:tool call (?:is|was) )?(?:rejected|denied) by the user", re.IGNORECASE)
_NEAR = 200
_AGENT = re.compile(r"\Aagent_id: ([\w-]{1,100})$", re.MULTILINE)
_COUNTS = (
    ("input_other", "inputOther"),
    ("output", "output"),
    ("input_cache_read", "inputCacheRead"),
    ("input_cache_creation", "inputCacheCreation"),
)


def call(name: Any, given: Any, call_id: Any, pointer: str | None) -> Event:
    """Kimi CLI writes arguments as JSON in a string."""
    if isinstance(given, str):
        with suppress(orjson.JSONDecodeError):
            given = orjson.loads(given)
    tool, fields = as_text(name), as_dict(given)
    described = _TOOLS.describe(tool, given, edits=_replaced(fields))
    return event_of(described, tool, given, as_text(call_id), pointer)


def _replaced(fields: dict[str, Any]) -> tuple[Edit, ...]:
    """What Kimi CLI replaces in a file: one text or several."""
    path, given = as_text(fields.get("path")), fields.get("edit")
    listed = given if isinstance(given, list) else [given]
    return tuple(
        Edit(path, as_text(edit.get("old")) or "", as_text(edit.get("new")) or "")
        for edit in listed
        if path and isinstance(edit, dict)
    )


def result(call_id: str, output: str, *, failed: bool, images: int, pointer: str) -> Result:
    refused = failed and _REFUSED.search(output[:_NEAR]) is not None
    status = "denied" if refused else "error" if failed else "ok"
    return Result(call_id, output, status, images=images, pointer=pointer)


def started(output: str) -> str | None:
    """The subagent that a call started, judging by its result."""
    found = _AGENT.search(output)
    return found[1] if found else None


def content(parts: Any) -> tuple[str, int]:
    """The text of content in any form, and how many images it has."""
    if isinstance(parts, str):
        return parts.strip(), 0
    listed = [as_dict(part) for part in (parts if isinstance(parts, list) else [parts])]
    texts = [text for part in listed if (text := as_text(part.get("text")))]
    images = sum(str(part.get("type")).startswith(("image", "media")) for part in listed)
    return "\n".join(texts).strip(), images


def counts_of(usage: Any) -> list[int]:
    fields = as_dict(usage)
    return [max(as_count(fields.get(name)) for name in names) for names in _COUNTS]


def usage_of(key: str, counts: list[int], model: str | None, window: int | None) -> Usage | None:
    entered, output, read, written = counts
    if not any(counts):
        return None
    return Usage(
        message_id=key,
        request_id=key,
        model=model,
        stop_reason=None,
        input_tokens=entered,
        output_tokens=output,
        cache_write_tokens=written,
        cache_write_1h_tokens=0,
        cache_read_tokens=read,
        context_window=window,
    )
