"""Antigravity: where its command line and its editors keep conversations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson

from sess_common.decode import decode
from sessiond.sourcekit.base import (
    ONE_READER,
    Conversation,
    Item,
    Parser,
    Record,
    SessionSpec,
    Source,
)
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_dict, as_text, as_time

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign, KnownRows

_CLI = "antigravity-cli"
_HOMES = (_CLI, "antigravity", "antigravity-ide", "antigravity-acp")
_CONVERSATIONS, _BRAIN, _GENERATED = "conversations", "brain", ".system_generated"
_TRANSCRIPTS = ("transcript.jsonl", "overview.txt")  # the later name, the earlier one
_HISTORY = "history.jsonl"
_NOT_ENTERED = frozenset(
    {
        *("chunks", "steps", "scratch", ".user_uploaded", "implicit", "annotations", "cache"),
        *("bin", "crashes", "browser_recordings", "html_artifacts"),
    }
)
_RESUME = ("agy", "--conversation")
_MIRROR, _PROMPTS_ONLY = 1, 2  # after the database


class AntigravitySource(Source):
    agent = "antigravity"
    title = "Antigravity"
    reads = (
        "Conversations of the command line and of editors that run it: the database of each, else"
        " its transcript, else the prompts in the history. Fields are known by number from several"
        " public readers; no source code is public."
    )
    leaves = (
        ("conversations/*.pb", "conversations of earlier versions: encrypted"),
        ("transcript_full.jsonl, chunks/, steps/", "copies of what is read"),
        ("other files below brain/", "plans, walkthroughs, uploads and scratch files"),
        ("gen_metadata", "only its counts: it repeats the whole prompt for each response"),
    )
    known_from = ONE_READER
    subscription = True
    edition = 2  # steps answer the calls of the last response; attempts count once

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.databases = _Databases()
        self.documents = _History()

    def places(self) -> list[str]:
        return [os.path.join(self.folders.home(), ".gemini", name) for name in _HOMES]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        inner = os.path.basename(folder)
        if inner == _CONVERSATIONS and name.endswith(".db"):
            return "database"
        if name in _TRANSCRIPTS and inner == "logs":
            return "transcript" if os.path.basename(os.path.dirname(folder)) == _GENERATED else None
        return "document" if name == _HISTORY and inner == _CLI else None

    def claims(self, path: str, head: bytes) -> bool:
        if self.classify(path) == "database":
            return b"trajectory_meta" in head
        return b'"step_index"' in head and b'"source"' in head

    def enters(self, directory: str) -> bool:
        return os.path.basename(directory) not in _NOT_ENTERED

    def identify(self, path: str, head: bytes) -> SessionSpec:  # noqa: ARG002 - its place says all
        session = os.path.dirname(os.path.dirname(os.path.dirname(path)))
        name = os.path.basename(session)
        return SessionSpec(name, fallback=_MIRROR, resume=resume_of(session, name))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.antigravity.transcript import TranscriptParser

        return TranscriptParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session = "d0c70000-0000-4000-8000-0000000000ab"
        record = {
            "step_index": 0,
            "source": "USER_EXPLICIT",
            "type": "USER_INPUT",
            "status": "DONE",
            "created_at": "2026-01-01T00:00:00Z",
            "content": f"<USER_REQUEST>\nput the {word} on\n</USER_REQUEST>",
        }
        logs = os.path.join(self.places()[0], _BRAIN, session, _GENERATED, "logs")
        return {os.path.join(logs, _TRANSCRIPTS[0]): orjson.dumps(record) + b"\n"}


def resume_of(path: str, session: str) -> tuple[str, ...]:
    """The command line finds only the conversations below its own home."""
    return (*_RESUME, session) if _CLI in path.split(os.sep) else ()


class _Databases:
    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        from sessiond.engines.databases import TableReader  # when something changed
        from sessiond.sources.antigravity.database import AntigravityTables

        layout = AntigravityTables(_RESUME if _CLI in foreign.path.split(os.sep) else ())
        yield from TableReader(layout).conversations(foreign, known, state)


class _History:
    """Prompts of all conversations of the command line."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:  # noqa: ARG002
        from sessiond.sources.antigravity.transcript import read_prompt

        changes: dict[str, Conversation] = {}
        for line in data.split(b"\n"):
            try:
                value = as_dict(decode(line)[0])
            except ValueError:
                continue
            session, text = as_text(value.get("conversationId")), as_text(value.get("display"))
            if session is None or text is None:
                continue
            if session not in changes:
                spec = SessionSpec(session, fallback=_PROMPTS_ONLY, resume=(*_RESUME, session))
                changes[session] = Conversation(spec, project_rank=1)
            change = changes[session]
            change.project = absolute(value.get("workspace")) or change.project
            record = Record("prompt", native_id=f"{session}/prompt-{len(change.items)}")
            record.ts = as_time(value.get("timestamp"))
            read_prompt(record, text)
            change.items.append(Item(str(len(change.items)), value=value, record=record))
        yield from changes.values()


SOURCE = AntigravitySource
