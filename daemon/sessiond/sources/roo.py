"""Roo Code, an extension of VS Code: where its tasks are."""

from __future__ import annotations

import os

from sessiond.families.editor_tasks import EditorTaskSource
from sessiond.sourcekit.base import SOURCE_CODE


class RooSource(EditorTaskSource):
    agent = "roo"
    title = "Roo Code"
    extension = "rooveterinaryinc.roo-cline"
    inclusive_since = 1_761_955_200_000  # 2025-11-01, when 3.29.5 was released
    reads = "Tasks in the storage of every VS Code editor, with the tasks that they started."
    leaves = (
        ("checkpoints/", "copies of files"),
        ("customStoragePath", "name the folder in config.toml: only the editor's settings know it"),
    )
    known_from = SOURCE_CODE

    def places(self) -> list[str]:
        command = os.path.join(self.folders.home(), ".vscode-mock", "global-storage", "tasks")
        return [*super().places(), command]


SOURCE = RooSource
