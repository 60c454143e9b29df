"""Messages with a role: those of cursor-agent's chats and of agent transcripts."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

from sess_schema.decode import decode
from sessiond.sources.base import TITLE_PROMPT, Event, Record, Result, Title
from sessiond.sources.claude.blocks import elements, result_text
from sessiond.sources.claude.injected import prompt_title
from sessiond.sources.claude.summary import searchable_input, summarize
from sessiond.sources.values import OPAQUE, as_dict, as_milliseconds, as_text, as_time, strings

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
_LABELS_OF_ROLES = {"system": "context", "tool": "tool_result"}
_CALL_IDS = ("toolCallId", "tool_use_id", "tool_call_id", "id")
_OUTPUTS = ("result", "content", "output", "experimental_content")
_FAILED = ("is_error", "isError")

_QUERY, _TIMESTAMP = "user_query", "timestamp"
_LABELS = {
    "system_reminder": "reminder",
    "system-reminder": "reminder",
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

# Cursor's tools, without case, underscores and version, by the names whose summaries are known.
_ALIASES = {
    "Bash": ("bash", "shell", "runterminalcmd", "runterminalcommand"),
    "Delete": ("delete", "deletefile"),
    "Edit": ("edit", "editfile", "editnotebook", "multiedit", "searchreplace", "strreplace"),
    "Glob": ("glob", "globfilesearch", "filesearch"),
    "Grep": ("grep", "grepsearch", "ripgrep"),
    "LS": ("ls", "listdir"),
    "Patch": ("applypatch",),
    "Read": ("read", "readfile"),
    "Task": ("agent", "subagent", "task"),
    "TodoWrite": ("todowrite",),
    "Write": ("createfile", "write", "writefile"),
}
_TOOLS = {alias: tool for tool, aliases in _ALIASES.items() for alias in aliases}
_ACTIONS = {"Read": "read", "Write": "write", "Edit": "edit", "Delete": "edit"}
# Cursor's names of arguments, best first, for each name by which summaries ask.
_FILES = ("path", "file_path", "filePath", "target_file", "targetFile", "target_notebook")
_ARGUMENTS = {
    "file_path": (*_FILES, "relative_workspace_path", "target_directory"),
    "pattern": ("pattern", "glob_pattern", "globPattern", "query"),
    "content": ("contents", "content"),
}
_TELLING = ("command", "path", "pattern", "query", "search_term", "url", "description", "prompt")
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_PATCHES = {"Add": "write", "Update": "edit", "Delete": "edit"}
_MOST_FILES = 100

_MARKER = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*(.*)")
_PARAMETER = re.compile(r"([A-Za-z_]\w{0,60})[:=][ \t]?(.*)")


def parse_message(
    value: dict[str, Any], *, pointer: str = "", native_id: str | None = None
) -> Record:
    """One message; `pointer` leads to it inside the raw record."""
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
    found = list(elements(content, pointer + place, record.warnings))
    if role == "user":
        _read_user(record, value, found)
    else:
        _read_others(record, value, found)
    return record


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
    """A line that is no message."""
    status = as_text(value.get("status")) or ""
    told: Any = value
    label = record.kind
    if record.kind in ("error", "turn_ended"):
        if record.kind == "turn_ended" and not re.search("error|fail", status, re.IGNORECASE):
            return
        told = value.get("error") or value.get("message") or status
        label = "error"
    text = "\n".join(strings(told, _NAMELESS)).strip()
    _tell(record, Event("system", text, label=label))


def _tell(record: Record, event: Event | None) -> None:
    if event is not None and (event.text or event.type == "tool_use"):
        record.events.append(event)


# -- what the agent and its tools said


def _read_others(
    record: Record, value: dict[str, Any], found: list[tuple[str, dict[str, Any]]]
) -> None:
    for place, block in found:
        kind = _kind(block)
        alone = len(found) == 1
        if kind.endswith("tool-result") or (record.role == "tool" and alone and _call_id(value)):
            _read_result(record, value, place, block, alone=alone)
        elif record.role == "assistant":
            _tell(record, _assistant_event(kind, place, block))
            record.model = record.model or _model(block)
        else:
            label = _LABELS_OF_ROLES.get(record.kind, record.kind)
            _tell(record, Event("system", _visible(block), label=label))


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
    given = block.get(name)
    call_id = _call_id(block)
    return Event(
        "tool_use",
        tool=tool,
        # Transcripts give a call no id, and no result that would need one.
        status="pending" if call_id else None,
        summary=summarize_call(tool, given),
        input=searchable_input(_decoded(given)),
        call_id=call_id,
        pointer=f"{place}/{name}",
        files=files_of_call(tool, given),
    )


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
        _tell(record, Event("system", output.strip(), label="tool_result", images=images))
        return
    # What a message says of its result does not say of which, if it has several.
    details = as_dict(_options(value).get("highLevelToolCallResult")) if alone else {}
    status, duration = _outcome(block, details)
    record.results.append(Result(call_id, output, status, duration, images, pointer=pointer))


def _outcome(block: dict[str, Any], details: dict[str, Any]) -> tuple[str, int | None]:
    output = as_dict(details.get("output"))
    success = as_dict(output.get("success"))
    duration = as_milliseconds(success.get("executionTime"))
    if duration is None:
        duration = as_milliseconds(success.get("durationMs"))
    if "rejected" in output or "permissionDenied" in output:
        return "denied", duration
    kind = as_text(as_dict(block.get("output")).get("type")) or ""
    marks = [part.get(name) is True for part in (block, details, output) for name in _FAILED]
    return ("error" if any(marks) or kind.startswith("error") else "ok"), duration


# -- tools


def summarize_call(tool: str | None, given: Any) -> str:
    """What a call of one of Cursor's tools does, in one line."""
    given, known = _decoded(given), _known(tool)
    if known == "Patch":
        return _one_line(", ".join(path for path, _ in files_of_call(tool, given)))
    if not isinstance(given, dict):
        return _one_line(given) if isinstance(given, str) else ""
    if known == "Delete":
        path = _argument(given, "file_path")
        return _one_line(f"{path} (delete)") if path else ""
    if known is not None:
        usual = {name: _argument(given, name) for name in _ARGUMENTS}
        return summarize(known, {**given, **{k: v for k, v in usual.items() if v}})
    telling = (as_text(given.get(name)) for name in _TELLING)
    return _one_line(next(filter(None, telling), "")) or summarize(tool, given)


def files_of_call(tool: str | None, given: Any) -> tuple[tuple[str, str], ...]:
    """(path, action) of the files that a call of one of Cursor's tools reads or changes."""
    given, known = _decoded(given), _known(tool)
    if known == "Patch":
        patched = _PATCHED.finditer(searchable_input(given))
        files = dict.fromkeys((found[2], _PATCHES[found[1]]) for found in patched)
        return tuple(files)[:_MOST_FILES]
    action = _ACTIONS.get(known or "")
    path = _argument(given, "file_path") if action and isinstance(given, dict) else ""
    return ((path, action),) if action and path else ()


def _known(tool: str | None) -> str | None:
    name = (tool or "").casefold().replace("_", "")
    return _TOOLS.get(name.removesuffix("v2"))


def _argument(given: dict[str, Any], name: str) -> str:
    return next(filter(None, (as_text(given.get(other)) for other in _ARGUMENTS[name])), "")


def _one_line(text: str) -> str:
    return summarize("ToolSearch", {"query": text})


def _decoded(given: Any) -> Any:
    """Arguments are JSON, at times inside a string."""
    if not isinstance(given, str) or not given.startswith("{"):
        return given
    try:
        return decode(given.encode("utf-8", "replace"))[0]
    except ValueError:
        return given


# -- what a person said, and what was put around it


class _Part(NamedTuple):
    name: str  # of its element; empty outside of all
    text: str
    whole: str


def _read_user(
    record: Record, value: dict[str, Any], found: list[tuple[str, dict[str, Any]]]
) -> None:
    parts: list[_Part] = []
    images = 0
    for place, block in found:
        kind = _kind(block)
        if kind.endswith("tool-result"):
            _read_result(record, value, place, block, alone=len(found) == 1)
        elif _is_image(kind, block):
            images += 1
        elif kind in _TEXTS or (not kind and isinstance(block.get("text"), str)):
            parts += _split(_visible(block))
        else:
            _tell(record, _other_event(kind, block))
    if _options(value).get("isSummary") is True:
        text = "".join(part.whole for part in parts).strip()
        _tell(record, Event("summary", text, label="compact"))
    else:
        _read_parts(record, parts, images)


def _read_parts(record: Record, parts: list[_Part], images: int) -> None:
    wrapped = any(part.name == _QUERY for part in parts)
    # A person may begin with elements of their own; a client writes nothing beside its own.
    own = not wrapped and any(not part.name for part in parts)
    typed: list[str] = []
    for part in parts:
        if part.name == _TIMESTAMP:
            record.ts = record.ts or read_time(part.text)
        elif part.name in ("", _QUERY):
            images += len(_IMAGE_MARK.findall(part.text))
            text = _IMAGE_MARK.sub("", part.text).strip()
            if part.name or not wrapped:
                typed.append(text)
            else:
                _tell(record, Event("system", text, label="context"))
        elif own and not _INJECTED.fullmatch(part.name):
            typed.append(part.whole.strip())
        else:
            label = _LABELS.get(part.name, "context")
            _tell(record, Event("system", part.text, label=label))
    text = "\n".join(filter(None, typed))
    if text or images:
        record.events.append(Event("user", text or "[image]", images=images))
    title = prompt_title(text)
    if title:
        record.titles.append(Title(title, TITLE_PROMPT))


def _split(text: str) -> Iterator[_Part]:
    """The elements that stand on lines of their own or side by side, and what is between."""
    done = at = 0
    plain = False
    unclosed: set[str] = set()  # nothing is searched for twice
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
            yield _Part("", text[done:start].strip(), text[done:start])
        yield _Part(name, inner.strip(), text[start:end])
        done = at = end
    if text[done:].strip():
        yield _Part("", text[done:].strip(), text[done:])


def _element(text: str, opening: re.Match[str]) -> tuple[str, int]:
    """The inside of an element, which may hold others of its name, and where it ends."""
    depth, last = 1, None
    tags = re.compile(rf"<(/?){opening[1]}(?:\s[^<>\n]{{0,500}})?>")
    for tag in tags.finditer(text, opening.end()):
        depth += -1 if tag[1] else 1
        if tag[1]:
            last = tag
        if depth == 0:
            break
    return (text[opening.end() : last.start()], last.end()) if last else ("", -1)


def read_time(text: str) -> int | None:
    """UTC milliseconds of a time as Cursor writes it for its model, or of an ISO time."""
    text = text.strip()
    found = _HUMAN_TIME.fullmatch(text) if len(text) <= _LONGEST_TIME else None
    if found is None:
        return as_time(text)
    month, day, year, hour, minute, second, half, sign, hours, minutes = found.groups()
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


# -- transcripts that are text


def split_text_transcript(text: str) -> list[dict[str, Any]]:
    """An older transcript as messages; a call and its result get an id that joins them."""
    reader = _TextReader()
    for line in text.split("\n"):
        reader.add(line.removesuffix("\r"))
    reader.end_block()
    return reader.messages


class _TextReader:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._role: str | None = None
        self._turn: list[dict[str, Any]] | None = None  # blocks of the assistant's message
        self._kind = "Text"
        self._name = ""
        self._body: list[str] = []
        self._waiting: list[dict[str, Any]] = []  # calls without a result
        self._calls = 0
        self._blank = True
        self._quoting = False

    def add(self, line: str) -> None:
        marker = _MARKER.fullmatch(line) if self._role == "assistant" else None
        if self._is_role(line):
            self.end_block()
            self._role, self._turn, self._kind = line.rstrip()[:-1], None, "Text"
        elif marker is not None:
            self.end_block()
            self._kind, self._name = marker[1], marker[2].strip()
            if self._kind == "Thinking":
                self._body.append(self._name)
        else:
            # What belongs to a marker is indented; the answer goes on at the margin.
            if self._kind != "Text" and line[:1] not in ("", " ", "\t"):
                self.end_block()
                self._kind = "Text"
            self._body.append(line)
            if self._role == "user":
                self._quoting = f"<{_QUERY}>" in line or self._quoting
                self._quoting = f"</{_QUERY}>" not in line and self._quoting
        self._blank = not line.strip()

    def _is_role(self, line: str) -> bool:
        """Prompts and answers have such lines too: after no blank one, or inside a query."""
        line = line.rstrip()
        return not self._quoting and (line == "assistant:" or (line == "user:" and self._blank))

    def end_block(self) -> None:
        text = textwrap.dedent("\n".join(self._body)).strip()
        self._body = []
        if self._kind == "Tool call":
            call = {"type": "tool-call", "toolName": self._name, "args": _arguments(text)}
            self._waiting.append(call)
            self._say(call)
        elif self._kind == "Tool result":
            self._end_call(text)
        elif text and self._role == "user":
            self.messages.append({"role": "user", "content": text})
        elif text and self._role == "assistant":
            self._say({"type": "text" if self._kind == "Text" else "thinking", "text": text})
        self._kind = "Text"

    def _say(self, block: dict[str, Any]) -> None:
        if self._turn is None:
            self._turn = []
            self.messages.append({"role": "assistant", "content": self._turn})
        self._turn.append(block)

    def _end_call(self, text: str) -> None:
        result = {"type": "tool-result", "toolName": self._name, "result": text}
        for place, call in enumerate(self._waiting):
            if self._name in ("", call["toolName"]):
                self._calls += 1
                call["toolCallId"] = result["toolCallId"] = f"call-{self._calls}"
                del self._waiting[place]
                break
        self._turn = None
        self.messages.append({"role": "tool", "content": [result]})


def _arguments(text: str) -> Any:
    """`name: value` or `name=value` on each line, or JSON, or whatever else it is."""
    given = _decoded(text)
    if isinstance(given, dict) or not text:
        return given or {}
    found: dict[str, str] = {}
    name = ""
    for line in text.split("\n"):
        parameter = _PARAMETER.fullmatch(line)
        if parameter is not None:
            name = parameter[1]
            found[name] = parameter[2]
        elif name:
            found[name] += f"\n{line}"
        else:
            return {"input": text}
    return found
