"""Agents that keep sessions in the tables of databases of one name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sessiond.sourcekit.base import Conversation, Layout, Source

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign, KnownRows


class InTables(Source):
    database: str  # the name of the file

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.databases = _Databases(self)

    def layout(self, foreign: Foreign) -> Layout:
        """How this database uses its tables."""
        raise NotImplementedError

    def classify(self, path: str) -> str | None:
        return "database" if os.path.basename(path) == self.database else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the name decides
        return self.classify(path) is not None


class _Databases:
    def __init__(self, source: InTables) -> None:
        self._source = source

    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        from sessiond.engines.databases import TableReader  # when something changed

        reader = TableReader(self._source.layout(foreign))
        yield from reader.conversations(foreign, known, state)
