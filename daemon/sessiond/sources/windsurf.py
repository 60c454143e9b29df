"""Windsurf: the databases of the editor's windows, which have its chats."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sessiond.sourcekit.base import (
    ONE_READER,
    Conversation,
    Item,
    Layout,
    Record,
    SessionSpec,
    Source,
    Table,
)
from sessiond.sourcekit.folders import folder_of_workspace
from sessiond.sourcekit.values import as_dict, as_line, as_text, as_time, decoded

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign, KnownRows

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


# -- chats, each in a tab; the table that has them also has sign-in data

_KEYS = ("workbench.panel.aichat.view.aichat.chatdata", "aiChat.chatdata")  # no others are read
_ROLES = {
    **dict.fromkeys(("user", "human", "1"), "user"),
    **dict.fromkeys(("ai", "assistant", "2"), "assistant"),
}
_TEXTS = ("text", "rawText", "initText")
_BY_WINDOW = 5


class _Databases:
    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        """What changed in the chats: most changes of the database are not of chats."""
        from sessiond.engines.databases import TableReader  # when something changed
        from sessiond.engines.steps import hash64

        values: dict[str, Any] = {}
        if foreign.has_table("ItemTable"):
            values = dict(foreign.many("SELECT key, value FROM ItemTable WHERE key = ?", _KEYS))
        window = os.path.dirname(foreign.path)
        folder = folder_of_workspace(window)
        now = hash64(repr((values, folder)).encode("utf-8", "replace"))
        if now != state.get("chats"):
            tabs = _Tabs(values, os.path.basename(window), folder)
            yield from TableReader(tabs).conversations(foreign, known, state)
            state["chats"] = now


class _Tabs(Layout):
    def __init__(self, values: dict[str, Any], window: str, folder: str | None) -> None:
        self._folder = folder
        self._tabs: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            tabs = as_dict(decoded(value)).get("tabs")
            if not isinstance(tabs, list):
                from sessiond.sourcekit.foreign import ForeignError

                raise ForeignError(f"{key} is in a format that is not known")
            for number, tab in enumerate(map(as_dict, tabs), 1):
                name = as_text(tab.get("tabId")) or f"{window}-{number}"
                if isinstance(tab.get("bubbles"), list):
                    self._tabs.setdefault(name, tab)

    def tables(self, db: Foreign) -> Sequence[Table]:  # noqa: ARG002 - all is in the values
        return ()

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:  # noqa: ARG002
        return ((name, (as_line(tab), self._folder)) for name, tab in self._tabs.items())

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:  # noqa: ARG002
        tab = self._tabs[conversation]
        sent = as_time(tab.get("lastSendTime"))
        items = []
        for number, bubble in enumerate(tab["bubbles"], 1):
            key = as_text(as_dict(bubble).get("id")) or str(number)
            record = _read_bubble(as_dict(bubble))
            record.native_id = f"{conversation}/{key}"
            items.append(Item(key, value={"bubble": bubble}, record=record))
        return Conversation(
            SessionSpec(conversation, title=as_text(tab.get("chatTitle"))),
            items=items,
            project=self._folder,
            project_rank=_BY_WINDOW,
            created_at=sent,  # its start is not recorded
            updated_at=sent,
        )


def _read_bubble(bubble: dict[str, Any]) -> Record:
    role = _ROLES.get(str(bubble.get("type")).lower())
    record = Record(role or "other", role=role)
    if role is None:
        record.warnings.append("a message of an unknown type")
    texts = (as_text(bubble.get(name)) for name in _TEXTS)
    text = next(filter(None, texts), "").strip()
    record.say(role or "system", text)
    return record


SOURCE = WindsurfSource
