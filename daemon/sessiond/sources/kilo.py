"""Kilo Code before version 7, an extension of VS Code: where its tasks are."""

from __future__ import annotations

from sessiond.families.editor_tasks import EditorTaskSource
from sessiond.sourcekit.base import SOURCE_CODE

__all__ = ["SOURCE", "KiloSource"]


class KiloSource(EditorTaskSource):
    agent = "kilo"
    title = "Kilo Code"
    extension = "kilocode.kilo-code"
    inclusive_since = 1_762_905_600_000  # 2025-11-12, when 4.119.0 was released
    reads = "Tasks in the storage of every VS Code editor, as versions before 7 wrote them."
    leaves = (
        ("checkpoints/", "copies of files"),
        ("customStoragePath", "name the folder in config.toml: only the editor's settings know it"),
    )
    known_from = SOURCE_CODE


SOURCE = KiloSource
