"""Codex CLI: where its rollouts are and which thread each one belongs to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import orjson

from sessiond.sourcekit.base import SOURCE_CODE, Described, Parser, SessionSpec, Source
from sessiond.sources.codex import head as heads
from sessiond.sources.codex import legacy
from sessiond.sources.codex.titles import ThreadNames

__all__ = ["SOURCE", "CodexSource"]

_FOLDERS = ("sessions", "archived_sessions")
_PREFIX = "rollout-"
_NAMES = "session_index.jsonl"


class CodexSource(Source):
    agent = "codex"
    title = "Codex"
    variables = ("CODEX_HOME",)
    reads = "Rollouts, archived and compressed ones included, and the names of threads."
    leaves = (
        ("history.jsonl", "prompts only; the rollouts have them"),
        ("state_*.sqlite, logs_*.sqlite", "an index of the rollouts, and the program's own log"),
    )
    known_from = SOURCE_CODE
    documents = legacy.Sessions()

    def places(self) -> list[str]:
        return [os.path.join(self._home(), folder) for folder in _FOLDERS]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        if name.endswith(".jsonl"):
            return "transcript" if name.startswith(_PREFIX) or heads.is_rollout_file(path) else None
        return "document" if name.startswith(_PREFIX) and name.endswith(".json") else None

    def claims(self, path: str, head: bytes) -> bool:
        if self.classify(path) == "document":
            return legacy.is_session(head)
        return heads.is_rollout(head)

    def sidecars(self, path: str) -> Sequence[str]:
        return (_names_of(path),)

    def identify(self, path: str, head: bytes) -> SessionSpec:
        return heads.identify(path, head, self._names.of(_names_of(path)))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.codex.records import CodexParser  # noqa: PLC0415 - when something changed

        return CodexParser(spec, state)

    def describe_stored(
        self,
        tool: str | None,
        record: Any,
        pointer: str,
        answer: Any,  # noqa: ARG002 - the call is enough
    ) -> Described:
        from sessiond.sources.codex.describe import describe_stored  # noqa: PLC0415 - when something changed

        return describe_stored(tool, record, pointer)

    def probe(self, word: str) -> dict[str, bytes]:
        thread, moment = "d0c70000-0000-7000-8000-000000000001", "2026-01-01T00:00:00.000Z"
        prompt = {"type": "input_text", "text": f"put the {word} on"}
        lines = (
            {"type": "session_meta", "payload": {"id": thread, "cwd": "/doctor"}},
            {
                "type": "response_item",
                "payload": {"type": "message", "role": "user", "content": [prompt]},
            },
        )
        path = os.path.join(self.places()[0], f"{_PREFIX}2026-01-01T00-00-00-{thread}.jsonl")
        return {
            path: b"".join(orjson.dumps({"timestamp": moment, **line}) + b"\n" for line in lines)
        }

    def _home(self) -> str:
        moved = self.environ.get("CODEX_HOME", "").strip()
        if moved:
            return self.folders.expand(moved)
        return os.path.join(self.folders.home(), ".codex")

    _names = ThreadNames()


def _names_of(path: str) -> str:
    """The list of thread names next to the sessions folder that holds a rollout."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        if os.path.basename(folder) in _FOLDERS:
            break
        folder = os.path.dirname(folder)
    return os.path.join(os.path.dirname(folder), _NAMES)


SOURCE = CodexSource
