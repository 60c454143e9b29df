"""Windsurf: where the databases of the editor's windows are, which have its chats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sessiond.sourcekit.base import ONE_READER, Conversation, Source

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign
    from sessiond.sourcekit.known_rows import KnownRows

__all__ = ["SOURCE", "WindsurfSource"]

_EDITORS = ("Windsurf", "Windsurf - Next")
_WINDOWS, _DATABASE, _FACTS = "workspaceStorage", "state.vscdb", "workspace.json"


class WindsurfSource(Source):
    agent = "windsurf"
    title = "Windsurf"
    variables = ("XDG_CONFIG_HOME",)
    reads = "Prompts and answers of chats that the editor keeps in the databases of its windows."
    leaves = (
        ("~/.codeium/windsurf/cascade/", "conversations of Cascade are encrypted"),
        ("other keys of state.vscdb", "settings and sign-in data"),
    )
    known_from = ONE_READER
    records_tokens = False
    subscription = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.databases = _Databases()

    def places(self) -> list[str]:
        data = self.folders.application_data()
        return [os.path.join(data, name, "User", _WINDOWS) for name in _EDITORS]

    def enters(self, directory: str) -> bool:
        """Skips what extensions keep for a window."""
        return os.path.basename(os.path.dirname(os.path.dirname(directory))) != _WINDOWS

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if os.path.basename(os.path.dirname(folder)) != _WINDOWS:
            return None
        return {_DATABASE: "database", _FACTS: "sidecar"}.get(name)

    def sidecars(self, path: str) -> Sequence[str]:
        return (*super().sidecars(path), os.path.join(os.path.dirname(path), _FACTS))

    def owner(self, sidecar: str) -> str:
        folder, name = os.path.split(sidecar)
        return os.path.join(folder, _DATABASE) if name == _FACTS else super().owner(sidecar)


class _Databases:
    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        from sessiond.sources.windsurf.chats import chats  # when something changed

        yield from chats(foreign, known, state)


SOURCE = WindsurfSource
