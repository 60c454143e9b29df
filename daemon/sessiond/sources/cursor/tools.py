"""Parses one tool call of Cursor: its arguments, its result and its status."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sess_common import ansi
from sess_schema import kinds
from sessiond.sourcekit.base import Described, Event, Result
from sessiond.sourcekit.values import as_dict, as_milliseconds, as_text, as_time
from sessiond.sources.cursor.arguments import (
    PLACES,
    Arguments,
    given_name,
    read_arguments,
    searchable,
    tool_name,
)
from sessiond.sources.cursor.calls import describe
from sessiond.sources.cursor.contents import changed_lines, changes
from sessiond.sources.cursor.richtext import structured
from sessiond.sources.cursor.texts import error_text, gather, is_empty, loose

_OUTCOMES = ("result", "output", "content", "text")
_MAIN_TEXTS = ("output", "contents", "stdout", "stderr", "resultForModel")

_FINE = frozenset({"completed", "complete", "success", "succeeded", "done"})
_FAILED = frozenset({"error", "errored", "failed", "failure", "timeout"})
_REFUSED = frozenset(
    {"rejected", "reject", "cancelled", "canceled", "aborted", "denied", "interrupted", "skipped"}
)

_DURATIONS = ("durationMs", "executionTimeMs", "executionTime", "executionDurationMs", "elapsedMs")
NO_CONTENTS: Mapping[str, str] = MappingProxyType({})
_ENDS = ("endedAtMs", "completedAtMs", "finishedAtMs", "endAtMs")


def is_call(data: Any) -> bool:
    """False for the empty stub of a call that user messages may have."""
    if not isinstance(data, dict):
        return False
    names = ("name", "toolName", "toolCallId", *PLACES, "result", "error")
    return any(not is_empty(data.get(name)) for name in names)


def tool_event(
    data: dict[str, Any], pointer: str, contents: Mapping[str, str] = NO_CONTENTS
) -> Event:
    """Parse a call; `contents` are the texts of files by their ids."""
    arguments = read_arguments(data)
    tool = tool_name(data, arguments)
    result = _unpacked(data.get("result"))
    described = _described(data, tool, arguments, result, contents)
    error = error_text(data.get("error")) or error_text(as_dict(result).get("error"))
    given, images = searchable(arguments)
    given = "\n".join(filter(None, (given, *changed_lines(described.edits, given))))
    output, more = _output(result)
    return Event(
        "tool_use",
        tool=tool,
        status=_status(data, result, error),
        summary=described.summary,
        input=given,
        output=_joined(output, error),
        duration_ms=_duration(data, result),
        images=images + more,
        call_id=first_line(data.get("toolCallId")) or first_line(data.get("id")),
        pointer=arguments.pointer(pointer),
        files=described.files,
        kind=described.kind,
        edits=described.edits,
    )


def _described(
    data: dict[str, Any],
    tool: str,
    arguments: Arguments,
    result: Any,
    contents: Mapping[str, str],
) -> Described:
    described = describe(tool, arguments.named, arguments.loose)
    # A call through the gateway may have the name of the server's tool.
    if given_name(data).startswith("mcp"):
        return described._replace(kind=kinds.MCP, edits=())
    if described.kind in (kinds.EDIT, kinds.WRITE) and len(described.files) == 1:
        exact = changes(described.files[0][0], data, result, contents)
        return described._replace(edits=exact or described.edits)
    return described


def tool_result(item: dict[str, Any], pointer: str) -> Result:
    """A result that is separate from its call; its `call_id` is empty if unknown."""
    place = next((name for name in _OUTCOMES if not is_empty(item.get(name))), None)
    result = _unpacked(item.get(place)) if place else None
    error = error_text(item.get("error")) or error_text(as_dict(result).get("error"))
    output, images = _output(result)
    status = _refusal(item, result) or _outcome(item, result, error)
    if item.get("isError") is True or item.get("is_error") is True:
        status = "error"
    return Result(
        first_line(item.get("toolCallId")) or "",
        _joined(output, error),
        status,
        duration_ms=_duration(item, result),
        images=images,
        pointer=f"{pointer}/{place or 'error'}" if place or error else pointer,
    )


def first_line(value: Any) -> str | None:
    """Cursor may join its own call id and the model's with a newline."""
    lines = value.split("\n") if isinstance(value, str) else []
    return next((line.strip() for line in lines if line.strip()), None)


# -- results


def _unpacked(value: Any) -> Any:
    """A result without the layers around it: `success`, and the gateway's own JSON."""
    result = structured(value)
    if isinstance(result, dict):
        for layer in ("result", "success"):
            inner = structured(result.get(layer))
            others = result.keys() - {layer, "selectedTool", "serverName"}
            if isinstance(inner, (dict, list)) and not others:
                return inner
    return result


def _output(result: Any) -> tuple[str, int]:
    main: list[Any] = []
    if isinstance(result, dict):
        main = [result[name] for name in _MAIN_TEXTS if as_text(result.get(name))]
    if main:
        texts, images = gather(main)
        images += gather([value for name, value in result.items() if name not in _MAIN_TEXTS])[1]
    else:
        texts, images = loose(result) if isinstance(result, str) else gather(result)
    return ansi.without("\n".join(texts)), images


def _joined(output: str, error: str) -> str:
    if not error or error in output:
        return output
    return f"{output}\n{error}" if output else error


# -- status


def _status(data: dict[str, Any], result: Any, error: str) -> str:
    refusal = _refusal(data, result)
    recorded = _recorded(data)
    # While a command runs, its output so far has an exit code of zero.
    came_back = not recorded and (bool(error) or not is_empty(result))
    if refusal or came_back or recorded in _FINE or recorded in _FAILED:
        return refusal or _outcome(data, result, error)
    return "pending"


def _recorded(data: dict[str, Any]) -> str:
    return (as_text(data.get("status")) or "").casefold()


def _refusal(data: dict[str, Any], result: Any) -> str | None:
    decision = (as_text(data.get("userDecision")) or "").casefold()
    facts = as_dict(result)
    if _recorded(data) in _REFUSED or decision in _REFUSED or facts.get("rejected") is True:
        return "denied"
    reason = as_text(facts.get("endedReason")) or ""
    return "denied" if reason.endswith("_ABORTED") and _recorded(data) not in _FAILED else None


def _outcome(data: dict[str, Any], result: Any, error: str) -> str:
    """The status of a finished call."""
    recorded, facts = _recorded(data), as_dict(result)
    reason = as_text(facts.get("endedReason")) or ""
    failed = recorded in _FAILED or _exit_code(facts) != 0 or reason.endswith("_FAILED")
    failed = failed or facts.get("isError") is True or bool(error_text(facts.get("error")))
    # With a result, Cursor recovered from the error.
    recovered = recorded in _FINE and not is_empty(result)
    return "error" if failed or (error and not recovered) else "ok"


def _exit_code(facts: dict[str, Any]) -> int:
    """The exit code; Cursor leaves out zeros."""
    for name in ("exitCodeV2", "exitCode", "exit_code"):
        code = facts.get(name)
        if isinstance(code, int) and not isinstance(code, bool):
            return code
    return 0


def _duration(data: dict[str, Any], result: Any) -> int | None:
    additional = as_dict(data.get("additionalData"))
    for facts in (as_dict(result), additional, data):
        for name in _DURATIONS:
            duration = as_milliseconds(facts.get(name))
            if duration is not None:
                return duration
    start = as_time(additional.get("startedAtMs"))
    end = next((end for name in _ENDS if (end := as_time(additional.get(name)))), None)
    return as_milliseconds(end - start) if start is not None and end is not None else None
