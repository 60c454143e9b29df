"""OpenCode: where its databases and older files are."""

from __future__ import annotations

from sessiond.families.opencode import OpencodeFamily, is_export


class OpencodeSource(OpencodeFamily):
    agent = "opencode"
    title = "OpenCode"
    variables = ("OPENCODE_DB", "XDG_DATA_HOME")
    program = "opencode"
    database_variable = "OPENCODE_DB"

    def claims(self, path: str, head: bytes) -> bool:
        return is_export(head) or super().claims(path, head)


SOURCE = OpencodeSource
