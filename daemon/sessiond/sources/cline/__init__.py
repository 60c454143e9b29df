"""Cline: where its tasks and, since version 4.1, its sessions are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from sessiond.families.editor_tasks import EditorTaskSource
from sessiond.sourcekit.base import SOURCE_CODE, Conversation

__all__ = ["SOURCE", "ClineSource"]

_MESSAGES = ".messages.json"


class ClineSource(EditorTaskSource):
    agent = "cline"
    title = "Cline"
    extension = "saoudrizwan.claude-dev"
    variables = ("CLINE_DIR", "CLINE_DATA_DIR", "CLINE_SESSION_DATA_DIR")
    reads = (
        "Tasks of the VS Code extension and of other hosts, and the sessions that the extension"
        " and the command line have kept since 4.1, with their subagents."
    )
    leaves = (
        ("checkpoints/, context_history.json", "copies of files and of what the messages have"),
        ("data/db/sessions.db", "an index of the sessions; their files have everything"),
        ("*.compaction.json", "a shortened copy of the messages"),
        ("data/secrets.json, data/globalState.json", "credentials and settings"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Documents(self.documents)

    def places(self) -> list[str]:
        data = self._moved("CLINE_DATA_DIR") or os.path.join(
            self._moved("CLINE_DIR") or os.path.join(self.folders.home(), ".cline"), "data"
        )
        sessions = self._moved("CLINE_SESSION_DATA_DIR") or os.path.join(data, "sessions")
        return [*super().places(), os.path.join(data, "tasks"), sessions]

    def classify(self, path: str) -> str | None:
        return "document" if path.endswith(_MESSAGES) else super().classify(path)

    def claims(self, path: str, head: bytes) -> bool:
        if path.endswith(_MESSAGES):
            return b'"messages"' in head and b'"role"' in head
        return super().claims(path, head)

    def sidecars(self, path: str) -> Sequence[str]:
        if not path.endswith(_MESSAGES):
            return super().sidecars(path)
        folder = os.path.dirname(path)
        session = os.path.join(folder, os.path.basename(folder))
        lead = f"{session}{_MESSAGES}"
        return (f"{session}.json",) if path == lead else (f"{session}.json", lead)

    def _moved(self, variable: str) -> str:
        return self.folders.expand(self.environ.get(variable, "").strip())


class _Documents:
    """Tasks, and the sessions that replaced them."""

    def __init__(self, tasks: Any) -> None:
        self._tasks = tasks

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        if not path.endswith(_MESSAGES):
            yield from self._tasks.conversations(path, data)
            return
        from sessiond.sources.cline.sessions import read_session  # when something changed

        yield read_session(path, data)


SOURCE = ClineSource
