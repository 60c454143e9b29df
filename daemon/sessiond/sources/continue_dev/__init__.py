"""Continue: sessions of its extensions and its command line, one JSON document each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Source

__all__ = ["SOURCE", "ContinueSource"]

_DOCUMENT, _INDEX = ".json", "sessions.json"


class _Sessions:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.continue_dev.sessions import read_session  # when something changed

        yield read_session(path, data, os.path.join(os.path.dirname(path), _INDEX))


class ContinueSource(Source):
    agent = "continue"
    title = "Continue"
    edition = 2
    variables = ("CONTINUE_GLOBAL_DIR",)
    reads = "Sessions of the VS Code and JetBrains extensions and of the command line."
    leaves = (
        ("dev_data/", "counts that name no session"),
        ("index/, config.yaml, .env", "an index of code, settings and credentials"),
        ("remote sessions", "Continue keeps them on its server only"),
    )
    known_from = SOURCE_CODE
    documents = _Sessions()

    def places(self) -> list[str]:
        moved = self.folders.expand(self.environ.get("CONTINUE_GLOBAL_DIR", "").strip())
        home = moved or os.path.join(self.folders.home(), ".continue")
        return [os.path.join(home, "sessions")]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        return "document" if name.endswith(_DOCUMENT) and name != _INDEX else None

    def claims(self, path: str, head: bytes) -> bool:
        if "kiro.kiroagent" in path:  # its list of sessions has these names, too
            return False
        return b'"workspaceDirectory"' in head and b'"sessionId"' in head

    def sidecars(self, path: str) -> Sequence[str]:
        return (os.path.join(os.path.dirname(path), _INDEX),)  # knows when it began


SOURCE = ContinueSource
