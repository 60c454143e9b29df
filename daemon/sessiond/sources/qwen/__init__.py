"""Qwen Code: where its chats are, and which session each one belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import orjson

from sessiond.sourcekit.base import SOURCE_CODE, Parser, SessionSpec, Source
from sessiond.sourcekit.files import small_json
from sessiond.sourcekit.ids import is_uuid
from sessiond.sourcekit.values import as_text

__all__ = ["SOURCE", "QwenSource"]

_CHATS, _ARCHIVE, _SUBAGENTS = "chats", "archive", "subagents"
_AGENT, _LOG, _META = "agent-", ".jsonl", ".meta.json"
_OWN = re.compile(rb'"parentUuid"\s*:.{0,4096}"parts"\s*:\s*\[', re.DOTALL)
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([\w.:-]{1,200})"')
_PARENT = re.compile(rb'"parentSessionId"\s*:\s*"([\w.:-]{1,200})"')


class QwenSource(Source):
    agent = "qwen"
    title = "Qwen Code"
    variables = ("QWEN_RUNTIME_DIR", "QWEN_HOME")
    reads = "Chats, archived ones included, and the transcripts of background subagents."
    leaves = (
        ("usage_record.jsonl, usage/", "sums of what the chats have"),
        ("tmp/*/chats/session-*.json", "chats of 2025, before Qwen Code had a format of its own"),
        ("*.runtime.json, file-history/", "state of the program, not conversations"),
    )
    known_from = SOURCE_CODE

    def places(self) -> list[str]:
        home = self._home()
        return [os.path.join(home, "projects"), os.path.join(home, "tmp")]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        above, outer = os.path.basename(folder), os.path.basename(os.path.dirname(folder))
        if outer == _SUBAGENTS and name.startswith(_AGENT):
            if name.endswith(_META):
                return "sidecar"
            return "transcript" if name.endswith(_LOG) else None
        chat = above == _CHATS or (above == _ARCHIVE and outer == _CHATS)
        return "transcript" if chat and name.endswith(_LOG) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return bool(_OWN.search(head))

    def enters(self, directory: str) -> bool:
        """Skips what a project's folder also holds: memory, tool outputs, history of files."""
        parts = directory.split(os.sep)
        for root in ("projects", "tmp"):
            if root in parts:
                below = parts[len(parts) - parts[::-1].index(root) :]
                return len(below) < 2 or below[1] in (_CHATS, _SUBAGENTS)
        return True

    def sidecars(self, path: str) -> Sequence[str]:
        return (path.removesuffix(_LOG) + _META,) if _is_subagent(path) else ()

    def owner(self, sidecar: str) -> str:
        return sidecar.removesuffix(_META) + _LOG

    def identify(self, path: str, head: bytes) -> SessionSpec:
        folder, name = os.path.split(path)
        stem = name.removesuffix(_LOG)
        if _is_subagent(path):
            meta = small_json(path.removesuffix(_LOG) + _META)
            parent = as_text(meta.get("parentSessionId")) or os.path.basename(folder)
            return SessionSpec(
                as_text(meta.get("agentId")) or stem.removeprefix(_AGENT),
                home=parent,
                kind="subagent",
                parent=parent,
                agent_type=as_text(meta.get("agentType")),
                title=as_text(meta.get("description")),
                call_id=as_text(meta.get("toolUseId")),
            )
        named = None if is_uuid(stem) else _SESSION.search(head)  # a file may have been renamed
        session = named[1].decode() if named else stem
        spawned = _PARENT.search(head)
        if spawned:  # a session of its own that another one started
            return SessionSpec(session, kind="subagent", parent=spawned[1].decode())
        return SessionSpec(session, resume=("qwen", "--resume", session))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.qwen.records import QwenParser  # when something changed

        return QwenParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session = "d0c70000-0000-4000-8000-0000000000ab"
        record = {
            "uuid": "d0c70000-0000-4000-8000-0000000000ac",
            "parentUuid": None,
            "sessionId": session,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "type": "user",
            "cwd": "/doctor",
            "message": {"role": "user", "parts": [{"text": f"put the {word} on"}]},
        }
        path = os.path.join(self.places()[0], "-doctor", _CHATS, session + _LOG)
        return {path: orjson.dumps(record) + b"\n"}

    def _home(self) -> str:
        for name in self.variables:
            if moved := self.environ.get(name, "").strip():
                return self.folders.expand(moved)
        return os.path.join(self.folders.home(), ".qwen")


def _is_subagent(path: str) -> bool:
    return os.path.basename(os.path.dirname(os.path.dirname(path))) == _SUBAGENTS


SOURCE = QwenSource
