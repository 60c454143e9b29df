"""Parses the log of a chat: messages, newer versions of them, and operations on earlier ones.

A message is written again whenever one of its calls ends; the last version counts. `$rewindTo`
takes back a message and everything after it. `$set.messages` and `$patch` change the model's
context: after a compression it is shorter than the chat, so they take nothing back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from sess_schema import kinds
from sess_schema.calls import named, path_in, progress
from sess_schema.edits import Edit
from sessiond.sourcekit.base import (
    LINK_RESULT,
    TITLE_AI,
    Described,
    Event,
    Link,
    Record,
    Result,
    Retire,
    SessionSpec,
    Title,
    Usage,
)
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import edits_of_arguments, exited_with_error
from sessiond.sourcekit.values import (
    OPAQUE,
    as_count,
    as_dict,
    as_list,
    as_text,
    as_time,
    scoped,
    strings,
)


class GeminiParser:
    """Parses the lines of one chat into records."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._digest: str | None = as_text(state.get("project"))
        self._started = state.get("begun") is True  # the log has messages
        self._answered = Answered(state.get("answered"))

    def state(self) -> dict[str, Any]:
        kept = {"project": self._digest, "begun": self._started}
        return kept | {"answered": self._answered.state()}

    def parse(self, value: dict[str, Any]) -> Record:
        if "$rewindTo" in value:
            return self._rewind(value)
        if "$set" in value:
            return self._facts("set", as_dict(value["$set"]), "/$set")
        if "type" in value:
            return self._message(value)
        if "sessionId" in value or "startTime" in value:
            return self._facts("metadata", value, "")
        record = Record("patch" if "$patch" in value else "other")
        if record.kind == "other":
            record.warnings.append("record of an unknown kind")
        return record

    def _message(self, value: dict[str, Any]) -> Record:
        self._started = True
        record = read_message(value)
        self._answered.drop_repeats(record)
        self._name(record)
        if record.native_id:
            record.retires.append(Retire(record.native_id))
        return record

    def _name(self, record: Record) -> None:
        record.native_id = scoped(self._session, record.native_id)
        if record.usage is not None:
            record.usage.message_id = record.native_id

    def _rewind(self, value: dict[str, Any]) -> Record:
        record = Record("rewind", role="system")
        message = scoped(self._session, as_text(value["$rewindTo"]))
        if message is None:
            record.warnings.append("a rewind names no message")
        else:
            record.retires.append(Retire(message, onward=True))
        return record

    def _facts(self, kind: str, facts: dict[str, Any], place: str) -> Record:
        record = Record(kind, role="system")
        record.ts = as_time(facts.get("startTime" if kind == "metadata" else "lastUpdated"))
        self._digest = as_text(facts.get("projectHash")) or self._digest
        if self._digest and isinstance(facts.get("directories"), list):
            record.cwd = with_digest({self._digest}, facts["directories"])
        if summary := as_text(facts.get("summary")):
            record.titles.append(Title(summary, TITLE_AI))
        if isinstance(facts.get("messages"), list):
            self._context(record, facts["messages"], f"{place}/messages")
        return record

    def _context(self, record: Record, messages: list[Any], place: str) -> None:
        """Read the model's context: all of it before the first message, then only summaries."""
        used: list[Usage] = []
        for number, value in enumerate(messages):
            if not isinstance(value, dict):
                record.warnings.append(f"message {number} is not an object")
                continue
            message = read_message(value, f"{place}/{number}")
            self._answered.drop_repeats(message)
            self._name(message)
            if self._started:
                record.events += [event for event in message.events if event.type == "summary"]
                continue
            record.events += message.events
            record.results += message.results
            record.titles += message.titles
            record.links += message.links
            record.warnings += message.warnings
            record.model = message.model or record.model
            if message.usage is not None:
                message.usage.request_id = message.usage.message_id  # one of several in this record
                used.append(message.usage)
        if used:
            record.usage, *record.advice = used
        self._started = self._started or any(event.type == "user" for event in record.events)


# -- messages: prompts, injected text, answers, thoughts and calls

_ROLES = {"user": "user", "gemini": "assistant"}
_NOTICES = frozenset({"info", "error", "warning"})
# Text in user messages that the CLI added: how it starts, and its label.
_INJECTED = (
    ("<session_context>", "context"),
    ("This is the Gemini CLI. We are setting up the context for our chat.", "context"),
    ("<hook_context>", "hook"),
    ("--- Content from referenced files ---", "files"),
    ("--- Content from ", "files"),
    ("System: Please continue.", "continue"),
)
_CANCELLED = "[Operation Cancelled]"
_SNAPSHOTS = ("<state_snapshot>", "<compressed_chat_history>")
_REMEMBERED = 64
_MEDIA = ("inlineData", "fileData")

Piece = tuple[str, dict[str, Any]]


class Answered:
    """The calls that ended: newer versions repeat their results in a message to the model."""

    def __init__(self, calls: Any) -> None:
        self._calls = [*filter(as_text, as_list(calls))]

    def state(self) -> list[str]:
        return list(self._calls)

    def drop_repeats(self, record: Record) -> None:
        """Take what is repeated out of the record, and remember what ended in it."""
        record.results = [one for one in record.results if one.call_id not in self._calls]
        ended = [
            event.call_id
            for event in record.events
            if event.call_id and event.status not in (None, "pending")
        ]
        if ended:
            self._calls = [*self._calls, *ended][-_REMEMBERED:]


def read_message(value: dict[str, Any], place: str = "") -> Record:
    """A record without operations; `place` is the pointer to a message inside another record."""
    kind = as_text(value.get("type")) or "message"
    record = Record(
        kind,
        role=_ROLES.get(kind, "system"),
        native_id=as_text(value.get("id")),
        ts=as_time(value.get("timestamp")),
    )
    if kind == "user":
        _read_prompt(record, value, place)
    elif kind == "gemini":
        _read_answer(record, value, place)
    else:
        text = "\n".join(piece["text"] for _, piece in _texts(value.get("content"), "")).strip()
        if not text and kind not in _NOTICES:
            text = "\n".join(strings(value.get("content"))).strip()
        record.say("system", text, kind)
    return record


# -- user messages


def _read_prompt(record: Record, value: dict[str, Any], place: str) -> None:
    shown, content = value.get("displayContent"), value.get("content")
    if _is_response(shown):  # the result of a tool, as a user message
        _add_responses(record, shown, f"{place}/displayContent")
        _add_injected(record, _joined(content), "tool")
        return
    _add_responses(record, content, f"{place}/content")
    typed, injected = _typed_and_injected(content)
    display = _joined(shown)
    if display:
        typed, given = [display], typed
        injected = [*((text, "context") for text in given if text not in display), *injected]
    images = sum(_is_image(piece) for _, piece in _pieces(content, ""))
    text = "\n".join(typed).strip()
    if text or (images and not injected):
        record.ask(text, images)
    for text, label in injected:
        _add_injected(record, text, label)


def _typed_and_injected(content: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """What a person typed, and (text, label) pairs of what the CLI added."""
    typed: list[str] = []
    injected: list[tuple[str, str]] = []
    for _, piece in _texts(content, ""):
        text = piece["text"]
        label = _label(text)
        if label is None and injected and injected[-1][1] == "files":
            label = "files"  # they follow the prompt, one piece per file
        if label and injected and injected[-1][1] == label:
            injected[-1] = (f"{injected[-1][0]}\n{text}", label)
        elif label:
            injected.append((text, label))
        else:
            typed.append(text)
    return typed, injected


def _label(text: str) -> str | None:
    text = text.lstrip()
    if text.startswith(_SNAPSHOTS):
        return "summary"
    return next((label for start, label in _INJECTED if text.startswith(start)), None)


def _add_injected(record: Record, text: str, label: str) -> None:
    if text := text.strip():
        kind = "summary" if label == "summary" else "system"
        record.events.append(Event(kind, text, label=None if kind == "summary" else label))


def _is_response(content: Any) -> bool:
    return any("functionResponse" in piece for _, piece in _pieces(content, ""))


def _add_responses(record: Record, content: Any, place: str) -> None:
    for at, piece in _pieces(content, place):
        response = as_dict(piece.get("functionResponse"))
        call = as_text(response.get("id"))
        if call:
            output, failed = response_text(piece)
            failed = failed or command_failed(as_text(response.get("name")), output)
            status = "error" if failed else "ok"
            status = "denied" if output.startswith(_CANCELLED) else status
            pointer = f"{at}/functionResponse/response"
            record.results.append(Result(call, output, status, pointer=pointer))


# -- model messages


def _read_answer(record: Record, value: dict[str, Any], place: str) -> None:
    record.model = as_text(value.get("model"))
    for thought in as_list(value.get("thoughts")):
        record.say("thinking", _thought(thought))
    calls = value.get("toolCalls")
    _read_content(record, value.get("content"), f"{place}/content", alone=not calls)
    if isinstance(calls, list):
        for number, call in enumerate(calls):
            if isinstance(call, dict):
                record.events.append(tool_call(call, f"{place}/toolCalls/{number}"))
                record.links += links_of(call)
            else:
                record.warnings.append(f"call {number} is not an object")
    elif calls is not None:
        record.warnings.append("calls are not a list")
    record.usage = _usage(value.get("tokens"), record.model)


def _read_content(record: Record, content: Any, place: str, *, alone: bool) -> None:
    """`alone`: the message has no list of calls, so calls in the content count."""
    has_thoughts = bool(record.events)
    answer: list[str] = []
    for pointer, piece in _pieces(content, place):
        text = as_text(piece.get("text"))
        if text and piece.get("thought"):
            if not has_thoughts:
                record.events.append(Event("thinking", text.strip()))
        elif text:
            answer.append(text)
        elif alone and isinstance(piece.get("functionCall"), dict):
            record.events.append(tool_call(piece["functionCall"], f"{pointer}/functionCall"))
    if text := "".join(answer).strip():
        at = next((n for n, e in enumerate(record.events) if e.type == "tool_use"), None)
        record.events.insert(len(record.events) if at is None else at, Event("assistant", text))


def _thought(thought: Any) -> str:
    if isinstance(thought, str):
        return thought.strip()
    fields = as_dict(thought)
    lines = (as_text(fields.get(name)) for name in ("subject", "description", "summary"))
    return "\n".join(filter(None, lines)).strip()


def _usage(tokens: Any, model: str | None) -> Usage | None:
    if not isinstance(tokens, dict):
        return None
    given, cached = as_count(tokens.get("input")), as_count(tokens.get("cached"))
    return Usage(
        message_id=None,  # set by the caller
        model=model,
        input_tokens=max(0, given - cached) + as_count(tokens.get("tool")),
        output_tokens=as_count(tokens.get("output")) + as_count(tokens.get("thoughts")),
        cache_read_tokens=cached,
        reasoning_tokens=as_count(tokens.get("thoughts")),
    )


# -- pieces of content (Gemini's `Part`)


def _pieces(content: Any, place: str) -> Iterator[Piece]:
    """(JSON pointer, piece) pairs of content in any of its forms."""
    if isinstance(content, str):
        yield place, {"text": content}
    elif isinstance(content, dict):
        yield place, content
    elif isinstance(content, list):
        for number, piece in enumerate(content):
            if isinstance(piece, str):
                yield f"{place}/{number}", {"text": piece}
            elif isinstance(piece, dict):
                yield f"{place}/{number}", piece


def _texts(content: Any, place: str) -> Iterator[Piece]:
    for pointer, piece in _pieces(content, place):
        if as_text(piece.get("text")) and not piece.get("thought"):
            yield pointer, piece


def _joined(content: Any) -> str:
    return "\n".join(piece["text"] for _, piece in _texts(content, "")).strip()


def _is_image(piece: dict[str, Any]) -> bool:
    return any(
        (as_text(as_dict(piece.get(name)).get("mimeType")) or "").startswith("image/")
        for name in _MEDIA
    )


# -- calls, which contain their results

_TOOLS = {
    kinds.SHELL: ("run_shell_command", "run_command", "shell"),
    kinds.READ: ("read_file", "read_many_files"),
    kinds.WRITE: ("write_file",),
    kinds.EDIT: ("edit", "replace", "smart_edit"),
    kinds.SEARCH: ("glob", "grep_search", "list_directory", "search_file_content"),
    kinds.FETCH: ("google_web_search", "web_fetch"),
    kinds.AGENT: (
        *("browser_agent", "cli_help", "codebase_investigator", "delegate_to_agent"),
        *("generalist", "invoke_agent", "invoke_subagent"),
    ),
    kinds.PLAN: ("enter_plan_mode", "exit_plan_mode", "update_topic", "write_todos"),
    kinds.QUESTION: ("ask_user",),
}
_KINDS = {tool: kind for kind, tools in _TOOLS.items() for tool in tools}
_ACTIONS = {kinds.READ: "read", kinds.WRITE: "write", kinds.EDIT: "edit"}
_ENDS = {"error": "error", "cancelled": "denied", "canceled": "denied", "rejected": "denied"}
_ENDED = frozenset({"success", "completed", "ok", "done"})
_SUBJECTS = (
    *("command", "objective", "task", "prompt", "query", "url", "fact", "plan_path", "title"),
    *("question", "name"),
)
_GLOBS = frozenset("*?[{")
_LONGEST = 1000  # the event also keeps the whole input
_HIDDEN = OPAQUE | {"id", "name", "mimeType", "thoughtSignature"}


def tool_call(call: dict[str, Any], place: str) -> Event:
    """An event, complete unless the call is still running."""
    tool, given = as_text(call.get("name")), call.get("args")
    output, failed, images = _output(call)
    described = describe(tool, call)
    return Event(
        "tool_use",
        tool=tool,
        status=_status(call, output, failed=failed),
        summary=described.summary,
        input="\n".join(strings(given)),
        output=output,
        images=images,
        call_id=as_text(call.get("id")),
        pointer=f"{place}/args",
        files=described.files,
        kind=described.kind,
        edits=described.edits,
    )


def links_of(call: dict[str, Any]) -> list[Link]:
    """A link to the subagent that ran a call."""
    agent, call_id = as_text(call.get("agentId")), as_text(call.get("id"))
    return [Link(agent, call_id, LINK_RESULT)] if agent and call_id else []


def describe(tool: str | None, call: dict[str, Any]) -> Described:
    """`call` has the arguments and, once it ended, the displayed result."""
    given = as_dict(call.get("args"))
    kind = _kind(tool, call)
    path = path_in(named(given))
    edits: tuple[Edit, ...] = ()
    if kind in (kinds.WRITE, kinds.EDIT):
        diff = as_text(as_dict(call.get("resultDisplay")).get("fileDiff"))
        edits = (Edit(path, patch=diff),) if diff and path else edits_of_arguments(path, given)
    return Described(kind, _one_line(_summary(kind, given, path)), _files(kind, given, path), edits)


def response_text(piece: Any) -> tuple[str, bool]:
    """The text of a `functionResponse`, and whether it is an error."""
    response = as_dict(as_dict(piece).get("functionResponse")).get("response")
    fields = as_dict(response)
    known = [fields[name] for name in ("output", "error", "result") if name in fields]
    return "\n".join(strings(known or response, _HIDDEN)), "error" in fields


def _output(call: dict[str, Any]) -> tuple[str, bool, int]:
    """The text of a result, whether it is an error, and how many images it has."""
    result = call.get("result")
    if isinstance(result, str):
        return result, False, 0
    texts, failed, images = list[str](), False, 0
    pieces = result if isinstance(result, list) else [result]
    own = [piece for piece in pieces if _answers(piece, call.get("id"))]
    for piece in own or pieces:  # a copy of what the model got has those of other calls too
        if isinstance(piece, dict) and "functionResponse" in piece:
            text, is_error = response_text(piece)
            failed = failed or is_error
        elif isinstance(piece, dict) and "inlineData" in piece:
            text, images = "", images + 1
        else:
            text = "\n".join(strings(piece, _HIDDEN))
        texts += [text] if text else []
    shown = call.get("resultDisplay")
    if not texts and isinstance(shown, str):
        texts.append(shown)
    return "\n".join(texts), failed, images


def _answers(piece: Any, call_id: Any) -> bool:
    response = as_dict(as_dict(piece).get("functionResponse"))
    return call_id is not None and response.get("id") == call_id


def command_failed(tool: str | None, output: str) -> bool:
    """A failed command is a successful call for the agent."""
    return _KINDS.get(tool or "") == kinds.SHELL and exited_with_error(output)


def _status(call: dict[str, Any], output: str, *, failed: bool) -> str:
    status = as_text(call.get("status")) or ""
    if status in _ENDS:
        return _ENDS[status]
    if failed or command_failed(as_text(call.get("name")), output):
        return "error"
    return "ok" if status in _ENDED or (output and not status) else "pending"


def _kind(tool: str | None, call: dict[str, Any]) -> str:
    name = tool or ""
    if name in _KINDS:
        return _KINDS[name]
    if as_text(call.get("agentId")):
        return kinds.AGENT
    return kinds.MCP if name.startswith("mcp_") or "__" in name else kinds.OTHER


def _files(kind: str, given: dict[str, Any], path: str) -> tuple[tuple[str, str], ...]:
    action = _ACTIONS.get(kind)
    if action is None:
        return ()
    return tuple((one, action) for one in ([path] if path else _listed(given)))


def _listed(given: dict[str, Any]) -> list[str]:
    """The files that are given by name, not by a pattern."""
    named = (given.get(name) for name in ("paths", "include"))
    listed = next((paths for paths in named if isinstance(paths, list)), [])
    return [path for path in listed if as_text(path) and _GLOBS.isdisjoint(path)]


def _summary(kind: str, given: dict[str, Any], path: str) -> str:
    if kind == kinds.SHELL:
        command, about = as_text(given.get("command")), as_text(given.get("description"))
        return f"{command} # {about}" if command and about else command or ""
    if kind == kinds.SEARCH:
        pattern = as_text(given.get("pattern"))
        return " in ".join(filter(None, (pattern, path))) if pattern else path
    if path and kind in _ACTIONS:
        return f"{path} (edit)" if kind == kinds.EDIT else path
    if kind == kinds.AGENT:
        name = as_text(given.get("agent_name"))
        task = next((text for key in _SUBJECTS if (text := as_text(given.get(key)))), "")
        return f"[{name}] {task}".rstrip() if name else task
    if isinstance(given.get("todos"), list):
        return progress(given["todos"])
    subject = next((text for key in _SUBJECTS if (text := as_text(given.get(key)))), "")
    return subject or path or ", ".join(_listed(given)) or ", ".join(sorted(given))


def _one_line(text: str) -> str:
    text = " ".join(text[: 4 * _LONGEST].split()) if "\n" in text or "\r" in text else text
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def with_digest(digests: set[str], paths: list[Any]) -> str | None:
    """The path whose SHA-256 is in `digests`: folder names and `projectHash` are such digests."""
    for path in paths:
        if isinstance(path, str) and absolute(path):
            digest = hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()
            if digest in digests:
                return absolute(path)
    return None
