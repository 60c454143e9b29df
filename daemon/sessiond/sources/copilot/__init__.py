"""GitHub Copilot CLI: where its sessions are, and what they are called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import orjson

from sessiond.sourcekit.base import DOCUMENTATION, Parser, SessionSpec, Source
from sessiond.sourcekit.files import first_object, small_file
from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.copilot import early
from sessiond.sources.copilot.store import Store

__all__ = ["SOURCE", "CopilotSource"]

_SESSIONS, _EARLY = "session-state", "history-session-state"
_EVENTS, _LOG, _DOCUMENT = "events.jsonl", ".jsonl", ".json"
_FACTS = "workspace.yaml"
_STORE = "session-store.db"
_IN_LINES = frozenset({"|", "|-", "|+", ">", ">-", ">+"})


class CopilotSource(Source):
    agent = "copilot"
    title = "Copilot CLI"
    variables = ("COPILOT_HOME",)
    reads = "Event logs of sessions with their subagents, their names, and tokens per request."
    leaves = (
        ("session-store.db: turns, search index", "copies of what the event logs have"),
        ("checkpoints/, rewind-file-snapshots/, files/", "copies of files"),
        ("logs/, config.json", "the program's own log and settings"),
    )
    known_from = DOCUMENTATION
    subscription = True
    documents = early.Sessions()
    databases = Store()

    def places(self) -> list[str]:
        home = self._home()
        return [os.path.join(home, name) for name in (_SESSIONS, _EARLY, _STORE)]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if name == _STORE:
            return "database"
        above = os.path.basename(os.path.dirname(folder))
        if name == _EVENTS and above == _SESSIONS:
            return "transcript"
        if os.path.basename(folder) in (_SESSIONS, _EARLY):
            if name.endswith(_LOG):
                return "transcript"
            return "document" if name.endswith(_DOCUMENT) else None
        if name == _FACTS and above == _SESSIONS:
            return "sidecar"
        return None

    def claims(self, path: str, head: bytes) -> bool:
        if path.endswith(_DOCUMENT):
            return early.is_session(head)
        start = as_dict(first_object(head).get("data"))
        return start.get("producer") == "copilot-agent" and "vscodeVersion" not in start

    def enters(self, directory: str) -> bool:
        """Skips the copies of files that a session keeps."""
        above = os.path.basename(os.path.dirname(os.path.dirname(directory)))
        return above != _SESSIONS

    def sidecars(self, path: str) -> Sequence[str]:
        if os.path.basename(path) == _EVENTS:
            return (os.path.join(os.path.dirname(path), _FACTS),)
        return super().sidecars(path)

    def owner(self, sidecar: str) -> str:
        folder, name = os.path.split(sidecar)
        return os.path.join(folder, _EVENTS) if name == _FACTS else super().owner(sidecar)

    def identify(self, path: str, head: bytes) -> SessionSpec:
        folder, name = os.path.split(path)
        named = os.path.basename(folder) if name == _EVENTS else name.removesuffix(_LOG)
        start = as_dict(first_object(head).get("data"))
        session = as_text(start.get("sessionId")) or named
        facts = _facts(os.path.join(folder, _FACTS)) if name == _EVENTS else {}
        return SessionSpec(
            session,
            title=facts.get("name") or facts.get("summary"),
            project=facts.get("cwd"),
            resume=("copilot", "--resume", session),
        )

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.families.copilot.events import EventParser  # when something changed

        return EventParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session, moment = "d0c70000-0000-4000-8000-0000000000c0", "2026-01-01T00:00:00.000Z"
        start = {"sessionId": session, "producer": "copilot-agent", "version": 1}
        events = (
            {"type": "session.start", "data": start, "id": f"{session}-1"},
            {"type": "user.message", "data": {"content": f"put the {word} on"}, "id": "2"},
        )
        path = os.path.join(self.places()[0], session, _EVENTS)
        return {
            path: b"".join(orjson.dumps({**event, "timestamp": moment}) + b"\n" for event in events)
        }

    def _home(self) -> str:
        moved = self.environ.get("COPILOT_HOME", "").strip()
        if moved:
            return self.folders.expand(moved)
        return os.path.join(self.folders.home(), ".copilot")


def _facts(path: str) -> dict[str, str]:
    """The flat `key: value` lines that Copilot writes beside a session's events."""
    facts = {}
    lines = small_file(path).decode("utf-8", "replace").splitlines()
    for line, following in pairwise((*lines, "")):
        key, colon, value = line.partition(":")
        value = value.strip()
        if value in _IN_LINES:  # the text follows
            value = following.strip() if following.startswith(" ") else ""
        if value[:1] in ("'", '"') and value[-1:] == value[:1]:
            value = value[1:-1].replace(value[:1] * 2, value[:1])
        if colon and key.isidentifier() and value and value not in ("null", "~"):
            facts[key] = " ".join(value.split())
    return facts


SOURCE = CopilotSource
