"""Goose: where its database of sessions is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessiond.families.in_tables import InTables
from sessiond.sourcekit.base import SOURCE_CODE

if TYPE_CHECKING:
    from sessiond.engines.tables import Layout
    from sessiond.sourcekit.foreign import Foreign

__all__ = ["SOURCE", "GooseSource"]


class GooseSource(InTables):
    agent = "goose"
    title = "Goose"
    database = "sessions.db"
    variables = ("GOOSE_PATH_ROOT", "XDG_DATA_HOME")
    reads = (
        "Sessions with their messages in sessions.db, and what each request used where it keeps a"
        " ledger; before that, the sum of a session."
    )
    leaves = (("*.jsonl", "the files of versions before 1.10, which Goose imports itself"),)
    known_from = SOURCE_CODE

    def places(self) -> list[str]:
        moved = self.environ.get("GOOSE_PATH_ROOT", "").strip()
        if moved:
            return [os.path.join(self.folders.expand(moved), "data", "sessions")]
        if self.platform == "win32":
            data = os.path.join(self.folders.roaming(), "Block", "goose", "data")
            return [os.path.join(data, "sessions")]
        places = [os.path.join(self.folders.data_home(), "goose", "sessions")]
        if self.platform == "darwin":
            data = os.path.join(self.folders.application_data(), "Block.block.goose")
            places.append(os.path.join(data, "sessions"))
        return places

    def layout(self, foreign: Foreign) -> Layout:  # noqa: ARG002 - each version is alike
        from sessiond.sources.goose.tables import GooseTables  # when something changed

        return GooseTables()


SOURCE = GooseSource
