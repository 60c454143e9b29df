"""Kilo Code: an extension of VS Code until version 7, since then made from OpenCode."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from sessiond.families.editor_tasks import EditorTaskSource
from sessiond.families.opencode import OpencodeFamily
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Source


class _Tasks(EditorTaskSource):
    extension = "kilocode.kilo-code"
    inclusive_since = 1_762_905_600_000  # 2025-11-12, when 4.119.0 was released


class _Sessions(OpencodeFamily):
    program, older_program = "kilo", "opencode"
    database_variable = "KILO_DB"


class KiloSource(Source):
    agent = "kilo"
    title = "Kilo Code"
    variables = ("KILO_DB", "XDG_DATA_HOME")
    reads = (
        "Sessions in the database that the command and the extension share since version 7, and"
        " tasks in the storage of every VS Code editor, as versions before it wrote them."
    )
    leaves = (
        *OpencodeFamily.leaves,
        ("checkpoints/", "copies of files"),
        ("customStoragePath", "name the folder in config.toml: only the editor's settings know it"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._sessions, self._tasks = _Sessions(*given, **named), _Tasks(*given, **named)
        self.databases = self._sessions.databases
        self.documents = self

    def places(self) -> list[str]:
        return [*self._sessions.places(), *self._tasks.places()]

    def _of(self, path: str) -> Source:
        return self._sessions if self._sessions.classify(path) else self._tasks

    def classify(self, path: str) -> str | None:
        return self._of(path).classify(path)

    def claims(self, path: str, head: bytes) -> bool:
        *folders, name = path.split(os.sep)
        theirs = name.startswith("opencode") or "opencode" in folders
        if theirs and self._sessions.program not in folders:
            return False  # the same format, but the other program's
        return self._of(path).claims(path, head)

    def enters(self, directory: str) -> bool:
        return self._sessions.enters(directory)

    def sidecars(self, path: str) -> Sequence[str]:
        return self._of(path).sidecars(path)

    def readers(self, path: str) -> Sequence[str]:
        return self._of(path).readers(path)

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        documents = self._of(path).documents
        assert documents is not None
        yield from documents.conversations(path, data)


SOURCE = KiloSource
