"""Parses messages with a role, from cursor-agent's chats and agent transcripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

from sess_schema import labels
from sessiond.sourcekit.base import Conversation, Event, Item, NotReady, Record, Result, SessionSpec
from sessiond.sourcekit.toolbox import event_of
from sessiond.sourcekit.values import (
    OPAQUE,
    as_dict,
    as_milliseconds,
    as_text,
    as_time,
    content_blocks,
    result_text,
    strings,
)
from sessiond.sources.cursor.richtext import structured
from sessiond.sources.cursor.summaries import describe

_ROLES = frozenset({"user", "assistant", "tool", "system"})
_TEXTS = frozenset({"text", "input-text", "output-text"})
_THOUGHTS = frozenset({"thinking", "reasoning"})
_HIDDEN = frozenset({"redacted-thinking", "redacted-reasoning"})
_IMAGES = frozenset({"image", "image-url", "input-image"})
_NAMELESS = frozenset(
    (*OPAQUE, "type", "id", "role", "status", "timestamp", "metadata", "providerOptions", "model")
)
_NO_MODEL = frozenset({"auto", "default"})
_REDACTED = "[REDACTED]"
_LABELS_OF_ROLES = {"system": labels.CONTEXT, "tool": labels.TOOL_RESULT}
_CALL_IDS = ("toolCallId", "tool_use_id", "tool_call_id", "id")
_OUTPUTS = ("result", "content", "output", "experimental_content")
_FAILED = ("is_error", "isError")


def parse_message(
    value: dict[str, Any],
    *,
    pointer: str = "",
    native_id: str | None = None,
    summary: bool = False,
) -> Record:
    """Parse one message; `pointer` leads to it in the raw record.

    `summary` if the agent wrote it in the name of the user, which the message may say itself.
    """
    message = value.get("message")
    body = message if isinstance(message, dict) else value
    kind = as_text(value.get("type"))
    role = as_text(value.get("role")) or as_text(body.get("role"))
    role = role or (kind if kind in _ROLES else None)
    record = Record(role or kind or "unknown", role=role, native_id=native_id)
    written = value.get("timestamp")
    record.ts = as_time(written)
    if written is not None and record.ts is None:
        record.warnings.append("bad timestamp")
    record.model = _model(value) or _model(body)
    if role is None:
        _read_notice(record, value)
        return record
    place, content = _content(value, body)
    blocks = list(content_blocks(content, pointer + place, record.warnings))
    if role == "user":
        _read_user(record, value, blocks, summary=summary or is_summary(value))
    else:
        _read_others(record, value, blocks)
        _join_results(record)
    return record


def is_summary(value: dict[str, Any]) -> bool:
    """Whether a message says that the agent wrote it in the name of the user."""
    return _options(value).get("isSummary") is True


def _content(value: dict[str, Any], body: dict[str, Any]) -> tuple[str, Any]:
    message = value.get("message")
    if isinstance(message, (str, list)):
        return "/message", message
    name = "text" if "content" not in body and "text" in body else "content"
    return (f"/{name}" if body is value else f"/message/{name}"), body.get(name)


def _model(value: dict[str, Any]) -> str | None:
    model = as_text(value.get("model")) or as_text(_options(value).get("modelName"))
    return model if model and model.lower() not in _NO_MODEL else None


def _options(value: dict[str, Any]) -> dict[str, Any]:
    return as_dict(as_dict(value.get("providerOptions")).get("cursor"))


def _read_notice(record: Record, value: dict[str, Any]) -> None:
    """Read a line that is not a message."""
    status = as_text(value.get("status")) or ""
    content: Any = value
    label = record.kind
    if record.kind in ("error", "turn_ended"):
        if record.kind == "turn_ended" and not re.search("error|fail", status, re.IGNORECASE):
            return
        content = value.get("error") or value.get("message") or status
        label = labels.ERROR
    text = "\n".join(strings(content, _NAMELESS)).strip()
    _add(record, Event("system", text, label=label))


def _add(record: Record, event: Event | None) -> None:
    if event is not None and (event.text or event.type == "tool_use"):
        record.events.append(event)


# -- messages of the agent and its tools


def _read_others(
    record: Record, value: dict[str, Any], blocks: list[tuple[str, dict[str, Any]]]
) -> None:
    for place, block in blocks:
        kind = _kind(block)
        alone = len(blocks) == 1
        if kind.endswith("tool-result") or (record.role == "tool" and alone and _call_id(value)):
            _read_result(record, value, place, block, alone=alone)
        elif record.role == "assistant":
            _add(record, _assistant_event(kind, place, block))
            record.model = record.model or _model(block)
        else:
            label = _LABELS_OF_ROLES.get(record.kind, record.kind)
            _add(record, Event("system", _visible(block), label=label))


def _kind(block: dict[str, Any]) -> str:
    kind = block.get("type")
    return kind.replace("_", "-") if isinstance(kind, str) else ""


def _assistant_event(kind: str, place: str, block: dict[str, Any]) -> Event | None:
    if kind in _TEXTS:
        return Event("assistant", _unredacted(block.get("text")))
    if kind in _THOUGHTS:
        thought = block.get("thinking") or block.get("text") or block.get(kind)
        return Event("thinking", _unredacted(thought))
    if kind.endswith(("tool-call", "tool-use")):
        return _tool_call(place, block)
    if _is_image(kind, block):
        return Event("assistant", "[image]", images=1)
    return _other_event(kind, block)


def _unredacted(value: Any) -> str:
    text = value.strip() if isinstance(value, str) else ""
    while text.endswith(_REDACTED):
        text = text[: -len(_REDACTED)].rstrip()
    return text


def _is_image(kind: str, block: dict[str, Any]) -> bool:
    media = as_text(block.get("mediaType")) or as_text(block.get("mimeType")) or ""
    return kind in _IMAGES or (kind == "file" and media.startswith("image/"))


def _other_event(kind: str, block: dict[str, Any]) -> Event | None:
    label = as_text(block.get("type")) or "block"
    return None if kind in _HIDDEN else Event("system", _visible(block), label=label)


def _visible(block: dict[str, Any]) -> str:
    text = block.get("text")
    if not isinstance(text, str):
        text = "\n".join(strings(block, _NAMELESS))
    return text.strip()


def _tool_call(place: str, block: dict[str, Any]) -> Event:
    tool = as_text(block.get("toolName")) or as_text(block.get("name"))
    name = next((name for name in ("args", "input", "arguments") if name in block), "input")
    given = structured(block.get(name))
    call_id = _call_id(block)
    event = event_of(describe(tool, given), tool, given, call_id, f"{place}/{name}")
    # Transcripts have no call ids, and no results that would need them.
    event.status = "pending" if call_id else None
    return event


def _call_id(value: dict[str, Any]) -> str | None:
    return next(filter(None, (as_text(value.get(name)) for name in _CALL_IDS)), None)


def _read_result(
    record: Record, value: dict[str, Any], place: str, block: dict[str, Any], *, alone: bool
) -> None:
    if _kind(block).endswith("tool-result"):
        name = next((name for name in _OUTPUTS if block.get(name) is not None), _OUTPUTS[0])
        output, images = result_text(block.get(name))
        images = images or result_text(block.get("experimental_content"))[1]
        call_id, pointer = _call_id(block), f"{place}/{name}"
    else:
        output, images, call_id, pointer = _visible(block), 0, None, place
    if call_id is None and alone and record.role == "tool":
        call_id = _call_id(value)
    if call_id is None:
        _add(record, Event("system", output.strip(), label=labels.TOOL_RESULT, images=images))
        return
    # A message with several results does not say which one its details belong to.
    details = as_dict(_options(value).get("highLevelToolCallResult")) if alone else {}
    status, duration = _outcome(block, details)
    record.results.append(Result(call_id, output, status, duration, images, pointer=pointer))


def _join_results(record: Record) -> None:
    """Join results with calls of the same message: it may grow, and then changes as one."""
    calls = {event.call_id: event for event in record.events if event.call_id}
    for result in record.results:
        if call := calls.get(result.call_id):
            call.output, call.status, call.duration_ms = (
                *(result.output, result.status, result.duration_ms),
            )
            call.images += result.images
    record.results = [result for result in record.results if result.call_id not in calls]


def _outcome(block: dict[str, Any], details: dict[str, Any]) -> tuple[str, int | None]:
    output = as_dict(details.get("output"))
    success = as_dict(output.get("success"))
    duration = as_milliseconds(success.get("executionTime"))
    if duration is None:
        duration = as_milliseconds(success.get("durationMs"))
    if duration is None:
        duration = as_milliseconds(block.get("durationMs"))
    if "rejected" in output or "permissionDenied" in output or block.get("isDenied") is True:
        return "denied", duration
    kind = as_text(as_dict(block.get("output")).get("type")) or ""
    marks = [holder.get(name) is True for holder in (block, details, output) for name in _FAILED]
    return ("error" if any(marks) or kind.startswith("error") else "ok"), duration


# -- messages of a person


def _read_user(
    record: Record,
    value: dict[str, Any],
    blocks: list[tuple[str, dict[str, Any]]],
    *,
    summary: bool,
) -> None:
    segments: list[Segment] = []
    images = 0
    for place, block in blocks:
        kind = _kind(block)
        if kind.endswith("tool-result"):
            _read_result(record, value, place, block, alone=len(blocks) == 1)
        elif _is_image(kind, block):
            images += 1
        elif kind in _TEXTS or (not kind and isinstance(block.get("text"), str)):
            segments += split_prompt(_visible(block))
        else:
            _add(record, _other_event(kind, block))
    if summary:
        text = "".join(segment.whole for segment in segments).strip()
        _add(record, Event("summary", text, label=labels.COMPACT))
    else:
        read_segments(record, segments, images)


# -- prompts: what a person typed, what Cursor added around it, and the time in it

_QUERY, _TIMESTAMP = "user_query", "timestamp"
_LABELS = {
    "system_reminder": labels.REMINDER,
    "system-reminder": labels.REMINDER,
    "system_notification": "notification",
    "task_notification": "notification",
}
_INJECTED = re.compile(
    r"system[_-]reminder|(?:system|task)_notification|additional_data|agent_(?:skills|transcripts)"
    r"|attached_files|available_subagent_types|code_selection|current_file|cursor_commands"
    r"|edit_history|external_links|git_status|image_files|linter_errors|manually_attached_skills"
    r"|mcp_file_system|memories|open_and_recently_viewed_files|project_layout|(?:user_)?rules"
    r"|terminal_selection|user_info|workspace_context"
)
_TAG = r"<([a-z][a-z_-]{2,60})(?:\s[^<>\n]{0,500})?>"
_TAG_ON_LINE = re.compile(rf"^[ \t]*{_TAG}", re.MULTILINE)
_TAG_NEXT = re.compile(rf"\s*{_TAG}")
_IMAGE_MARK = re.compile(r"^\[Image\][ \t]*$", re.MULTILINE)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HUMAN_TIME = re.compile(
    r"(?:[A-Za-z]{3,9},?\s+)?([A-Za-z]{3})[a-z]{0,6}\.?\s+(\d{1,2}),?\s+(\d{4}),?\s+(?:at\s+)?"
    r"(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s*([AaPp])\.?[Mm]\.?)?"
    r"\s*\(?(?:UTC|GMT)(?:\s*([+\u2212-])(\d{1,2})(?::?(\d\d))?)?\)?"
)
_LONGEST_TIME = 100


class Segment(NamedTuple):
    """A segment of a prompt."""

    name: str  # of its element; empty outside of elements
    text: str
    whole: str


def split_prompt(text: str) -> Iterator[Segment]:
    """The elements on separate lines or side by side, and the text between them."""
    done = at = 0
    plain = False
    unclosed: set[str] = set()  # to search for nothing twice
    while (tag := _TAG_NEXT.match(text, done) if at == done else None) or (
        tag := _TAG_ON_LINE.search(text, at)
    ):
        name = tag[1]
        start, at = tag.start(), tag.end()
        known = name in (_QUERY, _TIMESTAMP) or bool(_INJECTED.fullmatch(name))
        plain = plain or bool(text[done:start].strip())
        if name in unclosed or not (known or ("_" in name and not plain)):
            continue
        inner, end = _element(text, tag)
        if end < 0:
            unclosed.add(name)
            if not known or plain:
                continue
            inner, end = text[at:], len(text)
        if text[done:start].strip():
            yield Segment("", text[done:start].strip(), text[done:start])
        yield Segment(name, inner.strip(), text[start:end])
        done = at = end
    if text[done:].strip():
        yield Segment("", text[done:].strip(), text[done:])


def _element(text: str, opening: re.Match[str]) -> tuple[str, int]:
    """The inside of an element, which may contain others of its name, and its end."""
    depth, last = 1, None
    tags = re.compile(rf"<(/?){opening[1]}(?:\s[^<>\n]{{0,500}})?>")
    for tag in tags.finditer(text, opening.end()):
        depth += -1 if tag[1] else 1
        if tag[1]:
            last = tag
        if depth == 0:
            break
    return (text[opening.end() : last.start()], last.end()) if last else ("", -1)


def read_segments(record: Record, segments: list[Segment], images: int) -> None:
    """Add the events, title and time of a prompt to its record."""
    wrapped = any(segment.name == _QUERY for segment in segments)
    # A client writes no text outside its elements, so a person wrote it, maybe with elements.
    own = not wrapped and any(not segment.name for segment in segments)
    typed: list[str] = []
    for segment in segments:
        text, label = segment.text, _LABELS.get(segment.name, "context")
        if segment.name == _TIMESTAMP:
            record.ts = record.ts or read_time(text)
            continue
        if segment.name in ("", _QUERY):
            text, marks = _IMAGE_MARK.subn("", text)
            images += marks
        if segment.name == _QUERY or (not segment.name and not wrapped):
            typed.append(text.strip())
        elif own and not _INJECTED.fullmatch(segment.name):
            typed.append(segment.whole.strip())
        elif text.strip():
            record.events.append(Event("system", text.strip(), label=label))
    record.ask("\n".join(filter(None, typed)), images)


def read_time(text: str) -> int | None:
    """UTC milliseconds of a time as Cursor writes it for its model, or of an ISO time."""
    text = text.strip()
    match = _HUMAN_TIME.fullmatch(text) if len(text) <= _LONGEST_TIME else None
    if match is None:
        return as_time(text)
    month, day, year, hour, minute, second, half, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    clock = int(hour)
    if half:
        clock = clock % 12 + (12 if half in "Pp" else 0)
    try:
        moment = datetime(
            int(year),
            _MONTHS.index(month.lower()) + 1,
            int(day),
            clock,
            int(minute),
            int(second or 0),
            tzinfo=timezone(offset if sign == "+" else -offset) if sign else UTC,
        )
    except ValueError:
        return None
    return as_time(moment.isoformat())


# -- transcripts of older versions, which are plain text
# `user:` and `assistant:` on lines of their own begin messages; `[Thinking]`, `[Tool call] NAME`
# with indented arguments, and `[Tool result] NAME` begin sections of them.

_ROLE = re.compile(r"^(user|assistant|A):[ \t]*$", re.MULTILINE)
_SECTION = re.compile(r"^\[(Thinking|Tool call|Tool result)\][ \t]?(.*)$", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {1,4}([A-Za-z_][\w.-]{0,60}):[ \t]?(.*)$")


def conversation(spec: SessionSpec, data: bytes) -> Iterator[Conversation]:
    """The conversation of a file, unless the file is still empty."""
    change = Conversation(spec)
    last: int | None = None
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    for number, message in enumerate(_messages(text, spec.native_id)):
        native_id = f"{spec.native_id}-{number}"
        record = parse_message(message, native_id=native_id)
        if record.ts is None and last is not None:
            change.times[native_id] = last
        last = record.ts or last
        change.items.append(Item(native_id, value=message, record=record))
    if change.items:
        yield change
    elif text.strip():
        raise NotReady("has no messages")


def _messages(text: str, session: str) -> Iterator[dict[str, Any]]:
    """Messages in the form of newer transcripts."""
    calls = _Calls(session)
    for start, body in _split(_ROLE, text):
        if start is None:
            continue
        if start[1] == "user":
            content = [{"type": "text", "text": body.strip()}]
        else:
            content = [*_blocks(body, calls)]
        if any(block != {"type": "text", "text": ""} for block in content):
            role = "user" if start[1] == "user" else "assistant"
            yield {"role": role, "message": {"content": content}}


def _split(mark: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """The text before the first mark, then each mark with what follows it."""
    marks = [None, *mark.finditer(text)]
    ends = [*(match.start() for match in marks if match), len(text)]
    for match, end in zip(marks, ends, strict=True):
        yield match, text[match.end() + 1 if match else 0 : end]


class _Calls:
    """Gives calls ids, and finds the call of a result: the first of its name without one."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._count = 0
        self._open: dict[str, list[str]] = {}

    def begin(self, tool: str) -> str:
        self._count += 1
        call_id = f"{self._session}-call-{self._count}"
        self._open.setdefault(tool, []).append(call_id)
        return call_id

    def end(self, tool: str) -> str | None:
        waiting = self._open.get(tool)
        return waiting.pop(0) if waiting else None


def _blocks(body: str, calls: _Calls) -> Iterator[dict[str, Any]]:
    for heading, rest in _split(_SECTION, body):
        kind, head = (heading[1], heading[2].strip()) if heading else ("", "")
        if not kind:
            yield from _text(rest)
        elif kind == "Thinking":
            thought, _, said = f"{head}\n{rest}".strip("\n").partition("\n\n")
            yield {"type": "thinking", "thinking": thought.strip()}
            yield from _text(said)
        elif kind == "Tool call":
            given, said = _arguments(rest)
            yield {"type": "tool_use", "id": calls.begin(head), "name": head, "input": given}
            yield from _text(said)
        else:
            call_id = calls.end(head)
            block = {"type": "tool_result", "tool_use_id": call_id, "content": rest.strip("\n")}
            yield {name: value for name, value in block.items() if value is not None}


def _text(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"type": "text", "text": text.strip()}


def _arguments(text: str) -> tuple[dict[str, str], str]:
    """The indented arguments, whose values may have several lines, and what follows them."""
    given: dict[str, str] = {}
    name = ""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if match := _ARGUMENT.match(line):
            name = match[1]
            given[name] = match[2]
        elif not name or (not line.strip() and not _goes_on(lines[number + 1 :])):
            return given, "\n".join(lines[number:])
        else:
            given[name] += "\n" + line
    return given, ""


def _goes_on(lines: list[str]) -> bool:
    """Whether an empty line is inside of the arguments."""
    following = next((line for line in lines if line.strip()), "")
    return following.startswith(" ")
