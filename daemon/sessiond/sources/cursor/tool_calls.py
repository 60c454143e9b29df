"""Parses one tool call of Cursor: its arguments, its result and its status."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sess_common import escape
from sess_schema import edits, kinds
from sess_schema.calls import bare
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Described, Event, Result
from sessiond.sourcekit.toolbox import as_hunk, edits_of_patch
from sessiond.sourcekit.values import as_dict, as_list, as_milliseconds, as_text, as_time
from sessiond.sources.cursor.richtext import (
    MACHINERY,
    error_text,
    gather,
    is_binary,
    is_empty,
    loose,
    structured,
)
from sessiond.sources.cursor.summaries import describe

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign


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
    return escape.without_sequences("\n".join(texts)), images


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


# -- arguments, as Cursor parsed them and as the model wrote them

# Keys of a call's arguments, best first: as Cursor parsed them, then as the model wrote them.
PLACES = ("params", "rawArgs", "args", "arguments", "input")
_NESTED_JSON = frozenset({"parameters", "args", "arguments"})


@dataclass(slots=True)
class Arguments:
    named: dict[str, Any] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)  # texts that are not JSON, maybe cut off
    images: int = 0
    places: list[str] = field(default_factory=list)  # keys that gave something
    tool: str | None = None  # the tool called through a gateway

    def pointer(self, call: str) -> str | None:
        """Leads from the record to the arguments; `call` leads to the call."""
        return "\n".join(f"{call}/{place}" for place in self.places) or None


def read_arguments(data: dict[str, Any]) -> Arguments:
    arguments = Arguments()
    for place in PLACES:
        value = structured(data.get(place))
        if is_empty(value):
            continue
        if isinstance(value, dict):
            if _merge(arguments, value) or not arguments.places:
                arguments.places.append(place)
            continue
        texts, images = loose(value) if isinstance(value, str) else gather(value)
        arguments.loose += texts
        arguments.images += images
        if not arguments.places:
            arguments.places.append(place)
    return arguments


def _merge(arguments: Arguments, more: dict[str, Any]) -> bool:
    """Add arguments that are new; one name may be `target_file` or `targetFile`."""
    tools = more.get("tools")
    if isinstance(tools, list) and len(tools) == 1 and isinstance(tools[0], dict):
        arguments.tool = as_text(tools[0].get("name"))
        inner = structured(tools[0].get("parameters"))
        if isinstance(inner, dict):
            more = inner
    named = arguments.named
    known = {bare(name) for name, value in named.items() if not is_empty(value)}
    texts = {value for value in named.values() if isinstance(value, str)}
    new = {
        name: structured(value) if name in _NESTED_JSON else value
        for name, value in more.items()
        if bare(name) not in known and not (isinstance(value, str) and value in texts)
    }
    named |= new
    return any(not is_empty(value) for value in new.values())


def tool_name(data: dict[str, Any], arguments: Arguments) -> str:
    name = given_name(data)
    if name.startswith("mcp") and not name.removeprefix("mcp").strip("-_"):
        name = as_text(arguments.named.get("name")) or arguments.tool or name
    if name:
        return name
    number = data.get("tool")
    if isinstance(number, int) and not isinstance(number, bool):
        return f"tool-{number}"
    return as_text(number) or "unknown"


def given_name(data: dict[str, Any]) -> str:
    return (as_text(data.get("name")) or as_text(data.get("toolName")) or "").strip()


def searchable(arguments: Arguments) -> tuple[str, int]:
    """The values of the arguments, one per line without their names, and the number of images."""
    lines: list[str] = []
    images = arguments.images
    for name, value in arguments.named.items():
        if name in MACHINERY or value is None or is_binary(name, value):
            continue
        if isinstance(value, (str, dict, list)):
            texts, more = gather(value)
            lines += texts
            images += more
        else:
            lines.append(json.dumps(value))
    return "\n".join((*lines, *arguments.loose)), images


# -- what an edit changed
# Older versions keep the texts before and after it, or a diff, in the call. Since April 2026 the
# call has only their ids, and each text is a row of its own (`composer.content.<hash>`).

_PREFIX = "composer.content."
_LARGEST = 8 << 20
_OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256
# In JSON, or in JSON inside a string.
_ID = re.compile(rb'(?:before|after)ContentId\\*"\s*:\s*\\*"([^"\\]{1,200})')


def fetch(foreign: Foreign, raw: bytes) -> dict[str, str]:
    """The texts that a bubble names, by their ids, as far as the database has them."""
    if b"ContentId" not in raw:
        return {}
    texts: dict[str, str] = {}
    names = dict.fromkeys(name.decode("utf-8", "replace") for name in _ID.findall(raw))
    for name in names:
        if name.endswith(_OF_NOTHING):
            texts[name] = ""
    keys = {_PREFIX + name.removeprefix(_PREFIX): name for name in names if name not in texts}
    for key, value in foreign.many(
        f"SELECT key, value FROM cursorDiskKV WHERE key = ? AND length(value) <= {_LARGEST}",
        list(keys),
    ):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if isinstance(text, str):
            texts[keys[key]] = text
    return texts


def changes(
    path: str, data: dict[str, Any], result: Any, contents: Mapping[str, str]
) -> tuple[Edit, ...]:
    """What a call changed in its file, as exactly as it is known."""
    facts = as_dict(result)
    before, after = (_text(facts, when, contents) for when in ("before", "after"))
    new = not facts.get("beforeContentId") and before is None
    if after is not None and (new or before is not None):
        return (Edit(path, old=before or None, new=after),)
    computed = as_dict(data.get("additionalData")).get("precomputedDiff")
    edits = (_of_diff(path, structured(diff)) for diff in (computed, facts.get("diff")))
    return next(filter(None, edits), ())


def changed_lines(changed: Iterable[Edit], shown: str) -> list[str]:
    """The lines that edits remove and add, without those that `shown` has."""
    known = set(shown.split("\n"))
    unseen = (edit for edit in changed if not _is_in(edit, shown))
    lines = (line for edit in unseen for line in edits.lines(edit, context=0))
    texts = (line.text for line in lines if line.sign in "+-")
    return [*dict.fromkeys(text for text in texts if text.strip() and text not in known)]


def _is_in(edit: Edit, shown: str) -> bool:
    texts = (edit.old, edit.new, edit.patch)
    return not edit.hunks and all(text in shown for text in texts if text)


def _text(facts: dict[str, Any], when: str, contents: Mapping[str, str]) -> str | None:
    name = as_text(facts.get(f"{when}ContentId"))
    if name is not None and name in contents:
        return contents[name]
    text = facts.get(f"contents{when.capitalize()}Edit")
    return text if isinstance(text, str) else None


def _of_diff(path: str, diff: Any) -> tuple[Edit, ...]:
    if isinstance(diff, str):
        return edits_of_patch(diff, path)
    if isinstance(diff, dict):
        diff = diff.get("chunks") or diff.get("hunks")
    chunks = as_list(diff)
    hunks = tuple(filter(None, map(_hunk, chunks)))
    return (Edit(path, hunks=hunks),) if hunks else ()


def _hunk(chunk: Any) -> dict[str, Any] | None:
    facts = as_dict(chunk)
    signed = as_text(facts.get("diffString"))
    return as_hunk(facts if signed is None else facts | {"lines": signed.rstrip("\n").split("\n")})
