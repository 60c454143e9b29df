"""GitHub Copilot Chat in VS Code: where its sessions are, and which copy of one counts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from sess_common.decode import decode
from sess_schema import labels
from sessiond.families.copilot import CHAIN, STORED, call, usage_of
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    NotReady,
    Parser,
    Record,
    SessionSpec,
    Source,
    whole_json,
)
from sessiond.sourcekit.disk import first_object
from sessiond.sourcekit.folders import folder_of_workspace, user_folders
from sessiond.sourcekit.values import (
    as_dict,
    as_list,
    as_milliseconds,
    as_text,
    as_time,
    result_text,
)

_WORKSPACES, _GLOBAL = "workspaceStorage", "globalStorage"
_CHATS = "chatSessions"
_FACTS = "workspace.json"  # the folder that a window has open
_WINDOWLESS = ("emptyWindowChatSessions", "transferredChatSessions")
_EXTENSIONS = ("GitHub.copilot-chat", "github.copilot-chat")
_TRANSCRIPTS, _DEBUG = "transcripts", "debug-logs"
_LOGS = (".json", ".jsonl")
# Of the sources of a session, the best is shown: the chat, its copy without a folder, the
# extension's transcript, and the log for finding faults.
_TRACED = {"sid", "ts", "attrs"}  # in each line of that log
_BEGUN = "vscodeVersion"  # in the first line of a transcript
_CHAT, _MOVED, _TRANSCRIPT, _TRACE = 0, 1, 2, 3


class VSCodeSource(Source):
    agent = "vscode"
    title = "VS Code Copilot Chat"
    variables = ("XDG_CONFIG_HOME",)
    reads = "Chat sessions of VS Code, its Insiders build and VSCodium, also on remote machines."
    leaves = (
        ("state.vscdb", "lists of sessions, settings and sign-in data"),
        ("chatEditingSessions/", "copies of edited files"),
        ("edits made without a tool", "VS Code records where, not what was there before"),
    )
    known_from = SOURCE_CODE
    chain = CHAIN  # of the transcripts
    subscription = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Chats()

    def places(self) -> list[str]:
        return [
            os.path.join(user, folder)
            for user in user_folders(self.folders)
            for folder in (_WORKSPACES, *(os.path.join(_GLOBAL, name) for name in _WINDOWLESS))
        ]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        above, outer = os.path.basename(folder), os.path.basename(os.path.dirname(folder))
        if name == _FACTS and outer == _WORKSPACES:
            return "sidecar"
        if above == _CHATS or above in _WINDOWLESS:
            return "document" if name.endswith(_LOGS) else None
        if name.endswith(".jsonl") and outer in _EXTENSIONS and above == _TRANSCRIPTS:
            return "transcript"
        return "transcript" if name.endswith(".jsonl") and outer == _DEBUG else None

    def claims(self, path: str, head: bytes) -> bool:
        if _is_transcript(head):
            return True
        if path.endswith(".jsonl") and not is_log(head):
            return False
        # A long session may have its id at the end.
        named = b'"sessionId"' in head or b'"responderUsername"' in head
        return named and b'"requests"' in head and b'"version"' in head

    def kind_if_ours(self, path: str, head: bytes) -> str | None:
        return self.classify(path) or ("transcript" if _is_transcript(head) else "document")

    def enters(self, directory: str) -> bool:
        """Skips what other extensions and the editor itself keep for a window."""
        parts = directory.split(os.sep)
        if _WORKSPACES not in parts:
            return True
        below = parts[len(parts) - parts[::-1].index(_WORKSPACES) :]
        if len(below) < 2:
            return True
        if below[1] == _CHATS:
            return len(below) == 2
        return below[1] in _EXTENSIONS and (len(below) == 2 or below[2] in (_TRANSCRIPTS, _DEBUG))

    def sidecars(self, path: str) -> Sequence[str]:
        return (os.path.join(_storage(path), _FACTS),)

    def owner(self, sidecar: str) -> str:
        return os.path.dirname(sidecar)

    def identify(self, path: str, head: bytes) -> SessionSpec:
        folder, name = os.path.split(path)
        project = folder_of_workspace(_storage(path))
        start = as_dict(first_object(head).get("data"))
        if os.path.basename(folder) == _TRANSCRIPTS or _BEGUN in start:
            session = as_text(start.get("sessionId")) or name.removesuffix(".jsonl")
            return SessionSpec(session, project=project, fallback=_TRANSCRIPT)
        session = os.path.basename(folder)
        if name == "main.jsonl":
            return SessionSpec(session, project=project, fallback=_TRACE)
        # A subagent; its file is named after it and its own session.
        stem = name.removesuffix(".jsonl")
        return SessionSpec(
            f"{session}/{stem}", kind="subagent", parent=session, project=project, fallback=_TRACE
        )

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        if spec.fallback == _TRACE:
            return TraceParser(spec, state)
        from sessiond.families.copilot import EventParser

        return EventParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session = "d0c70000-0000-4000-8000-0000000005c0"
        request = {"requestId": "r1", "message": {"text": f"put the {word} on"}, "response": []}
        chat = {"version": 3, "sessionId": session, "requests": [request]}
        path = os.path.join(self.places()[0], "d0c7", _CHATS, f"{session}.json")
        return {path: orjson.dumps(chat)}


class _Chats:
    """Reads a session: a document, or the log of changes to one."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.vscode.chat import read_chat  # when something changed

        project = folder_of_workspace(_storage(path))
        moved = os.path.basename(os.path.dirname(path)) in _WINDOWLESS
        name = os.path.splitext(os.path.basename(path))[0]
        yield from read_chat(replayed(path, data), name, project, _MOVED if moved else _CHAT)


def _storage(path: str) -> str:
    """The folder of a window below `workspaceStorage`; another one, without facts, if none is."""
    head, inside, rest = path.rpartition(os.sep + _WORKSPACES + os.sep)
    if not inside:
        return os.path.dirname(path)
    return os.path.join(head, _WORKSPACES, rest.split(os.sep)[0])


def _is_transcript(head: bytes) -> bool:
    """Of the extension: what happened, or the log for finding faults."""
    first = first_object(head)
    return _BEGUN in as_dict(first.get("data")) or first.keys() >= _TRACED


# -- the log of changes that VS Code keeps of a session; older builds wrote it whole

_INITIAL, _SET, _PUSH, _DELETE = range(4)
_START = re.compile(rb'\s*\{\s*"kind"\s*:\s*0\b')
_LONGEST = 1 << 20  # of a list; a damaged log may name any place


def is_log(head: bytes) -> bool:
    return _START.match(head) is not None


def replayed(path: str, data: bytes) -> dict[str, Any]:
    """The session as the last change left it."""
    is_named_log = path.endswith(".jsonl")
    state = _replay(data) if is_named_log or is_log(data) else whole_json(data)
    if not isinstance(state, dict) or not isinstance(state.get("requests"), list):
        raise NotReady("is not a chat session")
    return state


def _replay(data: bytes) -> Any:
    state: Any = None
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            change, _ = decode(line)
        except ValueError:
            if number == len(lines) - 1:
                break  # it is being written
            continue
        if isinstance(change, dict):
            state = _apply(state, change)
    return state


def _apply(state: Any, change: dict[str, Any]) -> Any:
    kind, place, value = change.get("kind"), change.get("k"), change.get("v")
    if kind == _INITIAL:
        return value
    if not isinstance(place, list):
        return state
    if not place:
        return value if kind == _SET else state
    around = _at(state, place[:-1])
    if kind == _PUSH:
        held = _at(around, place[-1:])
        if not isinstance(held, list):
            held = []
            _put(around, place[-1], held)
        length = change.get("i")
        if isinstance(length, int) and 0 <= length < len(held):
            del held[length:]
        held += as_list(value)
    elif kind == _SET:
        _put(around, place[-1], value)
    elif kind == _DELETE and isinstance(around, dict) and isinstance(place[-1], str):
        around.pop(place[-1], None)
    elif kind == _DELETE and isinstance(around, list) and _index(place[-1]) < len(around):
        del around[_index(place[-1])]
    return state


def _at(state: Any, place: list[Any]) -> Any:
    for step in place:
        if isinstance(state, dict) and isinstance(step, str):
            state = state.get(step)
        elif isinstance(state, list) and _index(step) < len(state):
            state = state[_index(step)]
        else:
            return None
    return state


def _put(around: Any, step: Any, value: Any) -> None:
    if isinstance(around, dict) and isinstance(step, str):
        around[step] = value
    elif isinstance(around, list) and _index(step) < len(around):
        around[_index(step)] = value
    elif isinstance(around, list) and len(around) <= _index(step) < _LONGEST:
        around += [None] * (_index(step) - len(around)) + [value]


def _index(step: Any) -> int:
    whole = isinstance(step, int) and not isinstance(step, bool)
    return step if whole and step >= 0 else _LONGEST


# -- the log that the extension writes to find faults


class TraceParser:
    """Reads one entry at a time; entries do not depend on each other."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._is_subagent = spec.kind == "subagent"  # whose events the session has
        self._count = state.get("count") if isinstance(state.get("count"), int) else 0

    def state(self) -> dict[str, Any]:
        return {"count": self._count}

    def parse(self, value: dict[str, Any]) -> Record:
        self._count = (self._count or 0) + 1
        kind, attrs = as_text(value.get("type")) or "unknown", as_dict(value.get("attrs"))
        record = Record(kind, native_id=f"{self._session}/trace/{self._count}")
        record.ts = as_time(value.get("ts"))
        if kind == "llm_request":
            self._read_request(record, value, attrs)
        elif self._is_subagent:
            return record
        elif kind == "user_message":
            self._read_prompt(record, attrs)
        elif kind == "agent_response":
            record.role = "assistant"
            record.say("assistant", _text(attrs.get("response") or attrs.get("content")))
        elif kind == "tool_call":
            self._read_call(record, value, attrs)
        return record

    def _read_prompt(self, record: Record, attrs: dict[str, Any]) -> None:
        record.role = "user"
        record.ask(_text(attrs.get("content")))

    def _read_call(self, record: Record, value: dict[str, Any], attrs: dict[str, Any]) -> None:
        record.role = "assistant"
        event = call(as_text(value.get("name")), attrs.get("args"), None, "/attrs/args")
        event.output = _text(attrs.get("result")) or _text(attrs.get("error"))
        event.status = "error" if value.get("status") == "error" else "ok"
        event.duration_ms = as_milliseconds(value.get("dur"))
        record.events.append(event)

    def _read_request(self, record: Record, value: dict[str, Any], attrs: dict[str, Any]) -> None:
        record.say("system", _text(attrs.get("error")), labels.API_ERROR)
        record.model = as_text(attrs.get("model"))
        key = as_text(value.get("spanId")) or record.native_id or ""
        record.usage = usage_of(
            f"{self._session}/{key}",
            record.model,
            [attrs.get("inputTokens"), attrs.get("cachedTokens"), 0],
            attrs.get("outputTokens"),
            0,
        )
        record.usage.fallback = STORED


def _text(value: Any) -> str:
    return result_text(value)[0].strip()


SOURCE = VSCodeSource
