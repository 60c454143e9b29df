"""jcode by 1jehuang: snapshots of sessions, each with a journal of what came after it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Source

__all__ = ["SOURCE", "JehuangJcodeSource"]

_PREFIX, _SNAPSHOT, _JOURNAL = "session_", ".json", ".journal.jsonl"


class JehuangJcodeSource(Source):
    agent = "jehuang-jcode"
    title = "jcode (1jehuang)"
    edition = 2
    variables = ("JCODE_HOME",)
    reads = "Snapshots of sessions, their journals, and subagents."
    leaves = (
        ("*.bak, *.corrupt.jsonl, *.pre-wipe-*", "earlier states that the program kept"),
        ("logs/, memory/, active_pids/, todos/", "state of the program"),
        ("auth.json, *_oauth.json", "sign-in data"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Snapshots()

    def places(self) -> list[str]:
        moved = self.environ.get("JCODE_HOME", "").strip()
        home = self.folders.expand(moved) if moved else os.path.join(self.folders.home(), ".jcode")
        return [os.path.join(home, "sessions")]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        if not name.startswith(_PREFIX):
            return None
        if name.endswith(_JOURNAL):
            return "sidecar"
        return "document" if name.endswith(_SNAPSHOT) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return head.lstrip().startswith((b'{"id"', b'{\n  "id"')) and b'"messages"' in head

    def sidecars(self, path: str) -> Sequence[str]:
        return (_journal_of(path),)

    def owner(self, sidecar: str) -> str:
        return sidecar.removesuffix(_JOURNAL) + _SNAPSHOT


class _Snapshots:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.jehuang_jcode.sessions import read_session  # when something changed

        yield read_session(path, data, _journal_of(path))


def _journal_of(path: str) -> str:
    return path.removesuffix(_SNAPSHOT) + _JOURNAL


SOURCE = JehuangJcodeSource
