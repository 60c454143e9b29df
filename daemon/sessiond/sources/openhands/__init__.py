"""OpenHands: conversations of its command line and its SDK, one file per event."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sessiond.sourcekit import disk
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, SessionSpec, Source
from sessiond.sourcekit.files import small_file, small_json
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_dict, as_text

__all__ = ["SOURCE", "OpenHandsSource"]

_EVENTS, _STATE = "events", "base_state.json"
_EVENT = re.compile(r"event-(\d{5,})-[0-9a-fA-F-]{8,}\.json")
_LARGEST_EVENT, _LARGEST_STATE = 64 << 20, 64 << 20


class OpenHandsSource(Source):
    """The first event stands for its conversation: the others are read with it."""

    agent = "openhands"
    title = "OpenHands"
    variables = ("OPENHANDS_PERSISTENCE_DIR", "OPENHANDS_CONVERSATIONS_DIR")
    reads = (
        "Conversations of the command line and the SDK, with the conversations they delegate to."
    )
    leaves = (
        ("base_state.json", "only its counts, its model and its folder: it may hold credentials"),
        ("sessions/", "conversations of the server before version 1, in another format"),
        ("agent_settings.json, mcp.json", "settings and credentials"),
        ("observations/", "outputs in full; events have what the model saw"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Conversations(self)

    def places(self) -> list[str]:
        moved = self._moved("OPENHANDS_PERSISTENCE_DIR")
        home = moved or os.path.join(self.folders.home(), ".openhands")
        return [self._moved("OPENHANDS_CONVERSATIONS_DIR") or os.path.join(home, "conversations")]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        event = _EVENT.fullmatch(name)
        if event is None or os.path.basename(folder) != _EVENTS:
            return None
        return "sidecar" if int(event[1]) else "document"

    def claims(self, path: str, head: bytes) -> bool:
        return self.classify(path) is not None and b'"kind"' in head

    def enters(self, directory: str) -> bool:
        return os.path.basename(directory) != "observations"

    def owner(self, sidecar: str) -> str:
        names = sorted(_names(os.path.dirname(sidecar)))
        return os.path.join(os.path.dirname(sidecar), names[0]) if names else sidecar

    def sidecars(self, path: str) -> Sequence[str]:
        folder = os.path.dirname(path)
        return (folder, os.path.join(os.path.dirname(folder), _STATE))

    def parent(self, folder: str) -> str | None:
        """The conversation in whose folder this one is."""
        for root in map(disk.real, self.roots()):
            if folder.startswith(root + os.sep):
                first, *below = folder[len(root) + 1 :].split(os.sep)
                return first if below else None
        return None

    def _moved(self, variable: str) -> str:
        return self.folders.expand(self.environ.get(variable, "").strip())


class _Conversations:
    def __init__(self, source: OpenHandsSource) -> None:
        self._source = source

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.openhands.events import read_events  # when something changed

        events = os.path.dirname(path)
        folder = os.path.dirname(events)
        session = os.path.basename(folder)
        names = sorted(_names(events), key=_number)
        raw = [(name, _bytes(os.path.join(events, name), path, data)) for name in names]
        state = small_json(os.path.join(folder, _STATE), _LARGEST_STATE)
        model = as_text(as_dict(as_dict(state.get("agent")).get("llm")).get("model"))
        project = absolute(as_dict(state.get("workspace")).get("working_dir"))
        parent = self._source.parent(folder)
        items = read_events(session, raw, state, self._source.folders.zone())
        yield Conversation(
            SessionSpec(
                session,
                kind="subagent" if parent else "main",
                parent=parent,
                resume=() if parent else ("openhands", "--resume", session),
            ),
            items=items,
            project=project,
            project_rank=1 if project else 0,
            model=model,
        )


def _names(events: str) -> list[str]:
    try:
        return [name for name in disk.names(events) if _EVENT.fullmatch(name)]
    except OSError:
        return []


def _number(name: str) -> tuple[int, str]:
    found = _EVENT.fullmatch(name)
    return (int(found[1]) if found else 0), name


def _bytes(file: str, path: str, data: bytes) -> bytes:
    return data if file == path else small_file(file, _LARGEST_EVENT)


SOURCE = OpenHandsSource
