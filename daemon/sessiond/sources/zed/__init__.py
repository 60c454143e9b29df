"""Zed: where the database of its agent's threads is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessiond.families.in_tables import InTables
from sessiond.sourcekit.base import SOURCE_CODE

if TYPE_CHECKING:
    from sessiond.engines.tables import Layout
    from sessiond.sourcekit.foreign import Foreign

__all__ = ["SOURCE", "ZedSource"]

_FOLDER = "threads"


class ZedSource(InTables):
    agent = "zed"
    title = "Zed"
    database = "threads.db"
    variables = ("XDG_DATA_HOME",)
    reads = "Threads of Zed's own agent, in every format since 2025. Messages have no times."
    leaves = (
        ("conversations/", "text threads, which are documents of the editor"),
        ("threads-db.*.mdb", "threads of 2025 that Zed has copied into the database"),
        ("threads of other agents in Zed", "those agents keep them, and are read there"),
    )
    known_from = SOURCE_CODE

    def places(self) -> list[str]:
        if self.platform == "win32":
            return [os.path.join(self.folders.local(), "Zed", _FOLDER)]
        if self.platform == "darwin":
            return [os.path.join(self.folders.application_data(), "Zed", _FOLDER)]
        flatpak = os.path.join(self.folders.home(), ".var", "app", "dev.zed.Zed", "data")
        homes = (self.folders.data_home(), flatpak)
        return [os.path.join(home, "zed", _FOLDER) for home in homes]

    def layout(self, foreign: Foreign) -> Layout:  # noqa: ARG002 - each version is alike
        from sessiond.sources.zed.threads import ThreadTable  # when something changed

        return ThreadTable()


SOURCE = ZedSource
