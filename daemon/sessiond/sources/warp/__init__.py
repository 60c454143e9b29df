"""Warp: where the database of its terminal is, which also has what its agent was asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sessiond.engines.foreign import Foreign
from sessiond.engines.known_rows import KnownRows
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Source

__all__ = ["SOURCE", "WarpSource"]

_DATABASE, _IN_TERMINAL = "warp.sqlite", "tui"
_ON_LINUX = ("warp-terminal", "warp-terminal-preview", "warp-oss")
_ON_MAC = ("dev.warp.Warp-Stable", "dev.warp.Warp-Preview", "dev.warp.WarpOss")
_ON_WINDOWS = ("Warp", "WarpPreview", "WarpOss")
_GROUP = ("Library", "Group Containers", "2BBY89MBSN.dev.warp", "Library", "Application Support")


class WarpSource(Source):
    agent = "warp"
    title = "Warp"
    variables = ("XDG_STATE_HOME",)
    reads = (
        "Prompts, and the tokens and cost of each conversation. Where Warp keeps only the sum of"
        " the tokens of a model, it counts as input."
    )
    leaves = (
        ("the table agent_tasks", "answers and tool calls, in a format of Warp's service"),
        ("the tables blocks and commands", "what was run in the terminal, by anyone"),
        ("other tables", "windows, settings and sign-in data"),
    )
    known_from = SOURCE_CODE
    subscription = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.databases = _Databases()

    def places(self) -> list[str]:
        if self.platform == "win32":
            local = os.path.join(self.folders.local(), "warp")
            return [os.path.join(local, name, "data") for name in _ON_WINDOWS]
        if self.platform == "darwin":
            group = os.path.join(self.folders.home(), *_GROUP)
            above = (group, self.folders.application_data())
            return [os.path.join(folder, name) for folder in above for name in _ON_MAC]
        return [os.path.join(self.folders.state_home(), name) for name in _ON_LINUX]

    def enters(self, directory: str) -> bool:
        return os.path.basename(directory) == _IN_TERMINAL

    def classify(self, path: str) -> str | None:
        return "database" if os.path.basename(path) == _DATABASE else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the name decides
        return self.classify(path) is not None


class _Databases:
    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        from sessiond.engines.tables import TableReader  # noqa: PLC0415 - when something changed
        from sessiond.sources.warp.tables import WarpTables  # noqa: PLC0415

        yield from TableReader(WarpTables()).conversations(foreign, known, state)


SOURCE = WarpSource
