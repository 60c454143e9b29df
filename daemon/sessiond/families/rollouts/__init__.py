"""Rollouts: the logs of Codex CLI and of agents that are built on it, one file per thread."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from sess_schema.chains import Chain, Count, Pack
from sessiond.families.rollouts import threads
from sessiond.sourcekit.base import Conversation, Item, Parser, SessionSpec, Source, whole_object
from sessiond.sourcekit.values import as_dict, as_text, as_time

_FOLDERS = ("sessions", "archived_sessions")
_PREFIX = "rollout-"


class RolloutSource(Source):
    """An agent that writes rollouts below `<home>/sessions`; a subclass says where its home is."""

    home_variable: str  # moves the home
    home_folder: tuple[str, ...]  # where it is otherwise, below the user's home
    provider: str | None = None  # of models; marks a rollout as this agent's
    database_variable: str | None = None  # moves the database of thread names
    resume_command: tuple[str, ...] = ()  # takes the id of a thread
    chain = Chain(  # the order; going back counts the prompts of the thread
        heads=("session_meta",),
        counts=(Count("thread_rolled_back", "payload.num_turns"),),
        packs=(Pack("compacted", "payload.replacement_history"),),
    )
    edition = 5
    _names = threads.ThreadNames()  # of all agents

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents, self.databases = EarlySessions(), threads.Names()

    def home(self) -> str:
        return self.moved(self.home_variable) or os.path.join(
            self.folders.home(), *self.home_folder
        )

    def places(self) -> list[str]:
        home = self.home()
        folders = [os.path.join(home, folder) for folder in _FOLDERS]
        return folders + threads.databases(self._database_folders(home))[:1]

    def _database_folders(self, home: str) -> list[str]:
        moved = self.moved(self.database_variable or "")
        return [moved] if moved else [home, os.path.join(home, "sqlite")]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        if threads.is_database(name):
            return "database"
        if name.endswith(".jsonl"):
            return (
                "transcript" if name.startswith(_PREFIX) or threads.is_rollout_file(path) else None
            )
        return "document" if name.startswith(_PREFIX) and name.endswith(".json") else None

    def claims(self, path: str, head: bytes) -> bool:
        if path.endswith(".json"):
            return self.provider is None and is_session(head)
        return threads.is_rollout(head) and self._is_own(head)

    def is_whole(self, head: bytes) -> bool:
        return is_session(head)

    def _is_own(self, head: bytes) -> bool:
        provider = threads.meta_of(head).provider
        if self.provider:
            return provider == self.provider
        return provider not in {other.provider for other in RolloutSource.__subclasses__()} - {None}

    def sidecars(self, path: str) -> Sequence[str]:
        if threads.is_database(os.path.basename(path)):
            return super().sidecars(path)
        return (os.path.join(_home_of(path), threads.LIST),)

    def identify(self, path: str, head: bytes) -> SessionSpec:
        home = _home_of(path)
        names = self._names.of(home, self._database_folders(home))
        return threads.identify(path, head, names, self.resume_command)

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.families.rollouts.rollout import RolloutParser  # when something changed

        return RolloutParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        thread, moment = "d0c70000-0000-7000-8000-000000000001", "2026-01-01T00:00:00.000Z"
        prompt = {"type": "input_text", "text": f"put the {word} on"}
        lines = (
            {"type": "session_meta", "payload": {"id": thread, "cwd": "/doctor"}},
            {
                "type": "response_item",
                "payload": {"type": "message", "role": "user", "content": [prompt]},
            },
        )
        path = os.path.join(self.places()[0], f"{_PREFIX}2026-01-01T00-00-00-{thread}.jsonl")
        return {
            path: b"".join(orjson.dumps({"timestamp": moment, **line}) + b"\n" for line in lines)
        }


def _home_of(path: str) -> str:
    """The folder around the sessions folder that holds a rollout."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        if os.path.basename(folder) in _FOLDERS:
            break
        folder = os.path.dirname(folder)
    return os.path.dirname(folder)


# -- sessions of the first releases: one JSON document each, rewritten after every turn


class EarlySessions:
    """Reads `{session, items}`."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.families.rollouts.rollout import RolloutParser  # when something changed

        whole = whole_object(data, "items", "is not a session")
        facts = as_dict(whole.get("session"))
        name = os.path.splitext(os.path.basename(path))[0]
        spec = SessionSpec(as_text(facts.get("id")) or name)
        parser = RolloutParser(spec, {})
        items = [
            Item(str(number), value=value, record=parser.parse(value))
            for number, value in enumerate(whole["items"])
            if isinstance(value, dict)
        ]
        yield Conversation(spec, items=items, created_at=as_time(facts.get("timestamp")))


def is_session(head: bytes) -> bool:
    """Checks the first bytes only: the document may be longer."""
    start = b"".join(head[:4096].split())
    return start.startswith(b'{"session":{') and b'"items":[' in b"".join(head.split())
