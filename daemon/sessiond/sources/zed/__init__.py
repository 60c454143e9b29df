"""Zed: where the database of its agent's threads is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sessiond.engines.foreign import Foreign
from sessiond.engines.known_rows import KnownRows
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Source

__all__ = ["SOURCE", "ZedSource"]

_DATABASE, _FOLDER = "threads.db", "threads"


class ZedSource(Source):
    agent = "zed"
    title = "Zed"
    variables = ("XDG_DATA_HOME",)
    reads = "Threads of Zed's own agent, in every format since 2025. Messages have no times."
    leaves = (
        ("conversations/", "text threads, which are documents of the editor"),
        ("threads-db.*.mdb", "threads of 2025 that Zed has copied into the database"),
        ("threads of other agents in Zed", "those agents keep them, and are read there"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.databases = _Databases()

    def places(self) -> list[str]:
        if self.platform == "win32":
            return [os.path.join(self.folders.local(), "Zed", _FOLDER)]
        if self.platform == "darwin":
            return [os.path.join(self.folders.application_data(), "Zed", _FOLDER)]
        return [os.path.join(self.folders.data_home(), "zed", _FOLDER)]

    def classify(self, path: str) -> str | None:
        return "database" if os.path.basename(path) == _DATABASE else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the name decides
        return self.classify(path) is not None


class _Databases:
    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        from sessiond.engines.tables import TableReader  # noqa: PLC0415 - when something changed
        from sessiond.sources.zed.threads import ThreadTable  # noqa: PLC0415

        yield from TableReader(ThreadTable()).conversations(foreign, known, state)


SOURCE = ZedSource
