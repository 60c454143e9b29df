"""Warp: where the database of its terminal is, which also has what its agent was asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessiond.families.in_tables import InTables
from sessiond.sourcekit.base import SOURCE_CODE

if TYPE_CHECKING:
    from sessiond.engines.tables import Layout
    from sessiond.sourcekit.foreign import Foreign

__all__ = ["SOURCE", "WarpSource"]

_IN_TERMINAL = "tui"
_ON_LINUX = ("warp-terminal", "warp-terminal-preview", "warp-oss")
_ON_MAC = ("dev.warp.Warp-Stable", "dev.warp.Warp-Preview", "dev.warp.WarpOss")
_ON_WINDOWS = ("Warp", "WarpPreview", "WarpOss")
_GROUP = ("Library", "Group Containers", "2BBY89MBSN.dev.warp", "Library", "Application Support")


class WarpSource(InTables):
    agent = "warp"
    title = "Warp"
    database = "warp.sqlite"
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

    def layout(self, foreign: Foreign) -> Layout:  # noqa: ARG002 - each version is alike
        from sessiond.sources.warp.tables import WarpTables  # when something changed

        return WarpTables()


SOURCE = WarpSource
