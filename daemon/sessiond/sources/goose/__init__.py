"""Goose: where its database of sessions is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sessiond.engines.foreign import Foreign
from sessiond.engines.known_rows import KnownRows
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Source

__all__ = ["SOURCE", "GooseSource"]

_DATABASE = "sessions.db"


class GooseSource(Source):
    agent = "goose"
    title = "Goose"
    variables = ("GOOSE_PATH_ROOT", "XDG_DATA_HOME")
    reads = (
        "Sessions with their messages in sessions.db, and what each request used where it keeps a"
        " ledger; before that, the sum of a session."
    )
    leaves = (("*.jsonl", "the files of versions before 1.10, which Goose imports itself"),)
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.databases = _Databases()

    def places(self) -> list[str]:
        moved = self.environ.get("GOOSE_PATH_ROOT", "").strip()
        if moved:
            return [os.path.join(self.folders.expand(moved), "data", "sessions")]
        if self.platform == "win32":
            data = os.path.join(self.folders.roaming(), "Block", "goose", "data")
            return [os.path.join(data, "sessions")]
        return [os.path.join(self.folders.data_home(), "goose", "sessions")]

    def classify(self, path: str) -> str | None:
        return "database" if os.path.basename(path) == _DATABASE else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the name decides
        return self.classify(path) is not None


class _Databases:
    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        from sessiond.engines.tables import TableReader  # noqa: PLC0415 - when something changed
        from sessiond.sources.goose.tables import GooseTables  # noqa: PLC0415

        yield from TableReader(GooseTables()).conversations(foreign, known, state)


SOURCE = GooseSource
