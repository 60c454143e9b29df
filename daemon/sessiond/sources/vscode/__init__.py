"""GitHub Copilot Chat in VS Code: where its sessions are, and which copy of one counts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Parser, SessionSpec, Source
from sessiond.sourcekit.editors import folder_of_workspace, user_folders
from sessiond.sourcekit.files import first_object
from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.vscode.mutations import is_log

__all__ = ["SOURCE", "VSCodeSource"]

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
            from sessiond.sources.vscode.trace import TraceParser  # when something changed

            return TraceParser(spec, state)
        from sessiond.families.copilot.events import EventParser

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
        from sessiond.sources.vscode.mutations import replayed

        project = folder_of_workspace(_storage(path))
        moved = os.path.basename(os.path.dirname(path)) in _WINDOWLESS
        name = os.path.splitext(os.path.basename(path))[0]
        yield from read_chat(replayed(path, data), name, project, _MOVED if moved else _CHAT)


def _storage(path: str) -> str:
    """The folder of a window below `workspaceStorage`; another one, without facts, if none is."""
    head, found, rest = path.rpartition(os.sep + _WORKSPACES + os.sep)
    return (
        os.path.join(head, _WORKSPACES, rest.split(os.sep)[0]) if found else os.path.dirname(path)
    )


def _is_transcript(head: bytes) -> bool:
    """Of the extension: what happened, or the log for finding faults."""
    first = first_object(head)
    return _BEGUN in as_dict(first.get("data")) or first.keys() >= _TRACED


SOURCE = VSCodeSource
