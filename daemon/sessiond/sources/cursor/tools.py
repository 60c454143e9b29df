"""Parses one tool call of Cursor: its arguments, its result and its status."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sess_schema import ansi, kinds
from sessiond.sourcekit.base import Described, Event, Result
from sessiond.sourcekit.changes import bare
from sessiond.sourcekit.values import (
    OPAQUE,
    as_dict,
    as_milliseconds,
    as_text,
    as_time,
)
from sessiond.sources.cursor.calls import describe
from sessiond.sources.cursor.richtext import readable, structured

# Keys of a call's arguments, best first: as Cursor parsed them, then as the model wrote them.
_ARGUMENTS = ("params", "rawArgs", "args", "arguments", "input")
_OUTCOMES = ("result", "output", "content", "text")
_NESTED_JSON = frozenset({"parameters", "args", "arguments"})

# What Cursor computes about a call or a result; nobody wrote or reads it.
_MACHINERY = frozenset(
    {
        "afterContentId",
        "beforeContentId",
        "codeblockId",
        "effectiveSandboxPolicy",
        "endedReason",
        "modelCallId",
        "parsingResult",
        "repositoryInfo",
        "requestedSandboxPolicy",
        "toolCallBinary",
        "toolCallId",
    }
)
_NAMES_OF_KINDS = frozenset({*_MACHINERY, "mimeType", "outputMode", "selectedTool", "type"})
_MAIN_TEXTS = ("output", "contents", "stdout", "stderr", "resultForModel")
_OPAQUE_MEMBER = re.compile(
    rf'"({"|".join(sorted(OPAQUE))}|toolCallBinary)\\?"\s*:\s*\\?"([^"\\]*)'
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_MIXED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[^0-9]*[0-9]")
_SHORTEST_LINE = 60  # of encoded binary data
_LONGEST_WORD = 250  # a longer one is binary data, even with letters of one case

_FINE = frozenset({"completed", "complete", "success", "succeeded", "done"})
_FAILED = frozenset({"error", "errored", "failed", "failure", "timeout"})
_REFUSED = frozenset(
    {"rejected", "reject", "cancelled", "canceled", "aborted", "denied", "interrupted", "skipped"}
)

_DURATIONS = ("durationMs", "executionTimeMs", "executionTime", "executionDurationMs", "elapsedMs")
_ENDS = ("endedAtMs", "completedAtMs", "finishedAtMs", "endAtMs")


def is_call(data: Any) -> bool:
    """False for the empty stub of a call that user messages may have."""
    if not isinstance(data, dict):
        return False
    names = ("name", "toolName", "toolCallId", *_ARGUMENTS, "result", "error")
    return any(not _is_empty(data.get(name)) for name in names)


def tool_event(data: dict[str, Any], pointer: str) -> Event:
    arguments = _read_arguments(data)
    tool = _tool_name(data, arguments)
    described = _described(data, tool, arguments)
    result = _unpacked(data.get("result"))
    error = _error_text(data.get("error")) or _error_text(as_dict(result).get("error"))
    given, images = _searchable(arguments)
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
        pointer=f"{pointer}/{arguments.place}" if arguments.place else None,
        files=described.files,
        kind=described.kind,
        edits=described.edits,
    )


def describe_data(data: dict[str, Any]) -> Described:
    """Describe a call from the bubble's data about it."""
    arguments = _read_arguments(data)
    return _described(data, _tool_name(data, arguments), arguments)


def _described(data: dict[str, Any], tool: str, arguments: _Arguments) -> Described:
    described = describe(tool, arguments.named, arguments.loose)
    # A call through the gateway may have the name of the server's tool.
    through_gateway = _given_name(data).startswith("mcp")
    return described._replace(kind=kinds.MCP, edits=()) if through_gateway else described


def tool_result(item: dict[str, Any], pointer: str) -> Result:
    """A result that is separate from its call; its `call_id` is empty if unknown."""
    place = next((name for name in _OUTCOMES if not _is_empty(item.get(name))), None)
    result = _unpacked(item.get(place)) if place else None
    error = _error_text(item.get("error")) or _error_text(as_dict(result).get("error"))
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


# -- arguments


@dataclass(slots=True)
class _Arguments:
    named: dict[str, Any] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)  # texts that are not JSON, maybe cut off
    images: int = 0
    place: str | None = None
    tool: str | None = None  # the tool called through a gateway


def _read_arguments(data: dict[str, Any]) -> _Arguments:
    arguments = _Arguments()
    for place in _ARGUMENTS:
        value = structured(data.get(place))
        if _is_empty(value):
            continue
        arguments.place = arguments.place or place
        if isinstance(value, dict):
            _merge(arguments, value)
        else:
            texts, images = _loose(value) if isinstance(value, str) else _gather(value)
            arguments.loose += texts
            arguments.images += images
    return arguments


def _merge(arguments: _Arguments, more: dict[str, Any]) -> None:
    """Add arguments that are new; one name may be `target_file` or `targetFile`."""
    tools = more.get("tools")
    if isinstance(tools, list) and len(tools) == 1 and isinstance(tools[0], dict):
        arguments.tool = as_text(tools[0].get("name"))
        inner = structured(tools[0].get("parameters"))
        if isinstance(inner, dict):
            more = inner
    named = arguments.named
    known = {bare(name) for name, value in named.items() if not _is_empty(value)}
    texts = {value for value in named.values() if isinstance(value, str)}
    for name, value in more.items():
        if bare(name) not in known and not (isinstance(value, str) and value in texts):
            named[name] = structured(value) if name in _NESTED_JSON else value


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip() or value.strip() in ("{}", "[]", "null", '""')
    return value is None or value is False or (isinstance(value, (dict, list)) and not value)


def _tool_name(data: dict[str, Any], arguments: _Arguments) -> str:
    name = _given_name(data)
    if name.startswith("mcp") and not name.removeprefix("mcp").strip("-_"):
        name = as_text(arguments.named.get("name")) or arguments.tool or name
    if name:
        return name
    number = data.get("tool")
    if isinstance(number, int) and not isinstance(number, bool):
        return f"tool-{number}"
    return as_text(number) or "unknown"


def _given_name(data: dict[str, Any]) -> str:
    return (as_text(data.get("name")) or as_text(data.get("toolName")) or "").strip()


def _searchable(arguments: _Arguments) -> tuple[str, int]:
    """The values of the arguments, one per line, without their names."""
    lines: list[str] = []
    images = arguments.images
    for name, value in arguments.named.items():
        if name in _MACHINERY or value is None or _is_binary(name, value):
            continue
        if isinstance(value, (str, dict, list)):
            texts, more = _gather(value)
            lines += texts
            images += more
        else:
            lines.append(json.dumps(value))
    return "\n".join((*lines, *arguments.loose)), images


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
        texts, images = _gather(main)
        images += _gather([value for name, value in result.items() if name not in _MAIN_TEXTS])[1]
    else:
        texts, images = _loose(result) if isinstance(result, str) else _gather(result)
    return ansi.without("\n".join(texts)), images


def _loose(text: str) -> tuple[list[str], int]:
    """A text that is not JSON, or is JSON that was cut off."""
    if text.lstrip().startswith(("{", "[", '"')):
        text = _OPAQUE_MEMBER.sub(_member_or_nothing, text)
    visible, images = readable(text)
    return [visible], images


def _member_or_nothing(member: re.Match[str]) -> str:
    return '"' if member[1] not in OPAQUE or _is_binary(member[1], member[2]) else member[0]


def _is_binary(name: str, value: Any) -> bool:
    """Whether a value is binary data; plain text may have the same name."""
    if name not in OPAQUE:
        return False
    if isinstance(value, list):
        return any(_is_binary(name, item) for item in value if isinstance(item, str))
    lines = value.split() if isinstance(value, str) else []
    if not lines or any(len(line) < _SHORTEST_LINE for line in lines[:-1] or lines):
        return False
    word = "".join(lines)
    is_unlike_words = len(word) > _LONGEST_WORD or _MIXED.match(word) is not None
    return is_unlike_words and _ENCODED.fullmatch(word) is not None


def _gather(value: Any) -> tuple[list[str], int]:
    """Every readable string in decoded JSON, in order, and the number of images."""
    texts: list[str] = []
    images = 0
    stack = [iter((value,))]
    while stack:
        for item in stack[-1]:
            if isinstance(item, str):
                text, more = readable(item)
                images += more
                if text and text != "[image]":
                    texts.append(text)
            elif isinstance(item, dict):
                if _is_image(item):
                    images += 1
                    continue
                stack.append(_members(item))
                break
            elif isinstance(item, list):
                stack.append(iter(item))
                break
        else:
            stack.pop()
    return texts, images


def _members(item: dict[str, Any]) -> Iterator[Any]:
    return iter([v for k, v in item.items() if k not in _NAMES_OF_KINDS and not _is_binary(k, v)])


def _is_image(item: dict[str, Any]) -> bool:
    media = as_text(item.get("mimeType")) or as_text(item.get("media_type")) or ""
    return item.get("type") == "image" or media.startswith("image/")


def _error_text(value: Any) -> str:
    if _is_empty(value):
        return ""
    error = structured(value)
    if isinstance(error, str):
        return _loose(error)[0][0].strip()
    if isinstance(error, dict):
        seen = (error.get("clientVisibleErrorMessage"), error.get("modelVisibleErrorMessage"))
        messages = dict.fromkeys(text for text in map(as_text, seen) if text)
        if messages:
            return "\n".join(_gather([*messages])[0])
    return "\n".join(_gather(error)[0])


def _joined(output: str, error: str) -> str:
    if not error or error in output:
        return output
    return f"{output}\n{error}" if output else error


# -- status


def _status(data: dict[str, Any], result: Any, error: str) -> str:
    refusal = _refusal(data, result)
    recorded = _recorded(data)
    # While a command runs, its output so far has an exit code of zero.
    came_back = not recorded and (bool(error) or not _is_empty(result))
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
    failed = failed or facts.get("isError") is True or bool(_error_text(facts.get("error")))
    # With a result, Cursor recovered from the error.
    recovered = recorded in _FINE and not _is_empty(result)
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
