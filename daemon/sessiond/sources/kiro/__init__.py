"""Kiro: where its command line and its editor keep their sessions, in four generations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from sess_schema.chains import ONWARD, RECORDS, Chain, Count, Name
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Parser, SessionSpec, Source
from sessiond.sourcekit.disk import small_file, small_json
from sessiond.sources.kiro.documents import MESSAGES, SESSION, SUBAGENTS, facts_of, spec_of

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign, KnownRows

_HOME, _SESSIONS, _CLI = ".kiro", "sessions", "cli"
_DATABASE, _EXTENSION, _WORKSPACES = "data.sqlite3", "kiro.kiroagent", "workspace-sessions"
_LIST = "sessions.json"
_LARGEST = 64 << 20
# What `/save` of version 1 and of Amazon Q writes: a value of the table.
_SAVED = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"conversation_id"\s*:\s*"')


class KiroSource(Source):
    agent = "kiro"
    title = "Kiro"
    variables = ("KIRO_HOME", "XDG_DATA_HOME")
    reads = (
        "Sessions of the command line and of the editor with their subagents, in all formats so"
        " far: the database of version 1 and conversations saved from it, the logs of version 2"
        " and those that both share since"
        " version 3. Kiro counts credits; it records few tokens or none. The source code of"
        " versions 1 and 2 was read; the rest is known from public readers."
    )
    leaves = (
        ("other tables of data.sqlite3", "sign-in data and settings"),
        ("*.chat and execution files of the editor before 1.0", "copies of what the model saw"),
        ("snapshots/, tool-outputs/, *.history", "copies of files, outputs and prompts"),
    )
    known_from = SOURCE_CODE
    chain = Chain(
        "id",
        heads=("session", "session_start"),
        names=(Name("tombstone", "payload.effectiveFromMessageId", ONWARD, or_goes=True),),
        counts=(Count("ResetTo", "data.target_index", RECORDS),),
    )
    subscription = True

    whole = re.compile(rb'"conversation_id"\s*:|"session_state"\s*:|"history"\s*:')

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.databases = _Databases()
        self.documents = _Documents()

    def places(self) -> list[str]:
        homes = [os.path.join(self.folders.home(), _HOME)]
        if moved := self.moved("KIRO_HOME"):
            homes.append(moved)
        editor = os.path.join(self.folders.application_data(), "Kiro", "User", "globalStorage")
        return [
            *(os.path.join(home, _SESSIONS) for home in homes),
            self._data(),
            os.path.join(editor, _EXTENSION, _WORKSPACES),
        ]

    def _data(self) -> str:
        if self.platform == "win32":
            return os.path.join(self.folders.local(), "Kiro-Cli")
        mac = self.platform == "darwin"
        return os.path.join(
            self.folders.application_data() if mac else self.folders.data_home(), "kiro-cli"
        )

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        inner, outer = os.path.basename(folder), os.path.basename(os.path.dirname(folder))
        if name in (MESSAGES, SESSION):
            return "document" if name == SESSION else "transcript"
        if name == _DATABASE:
            return "database" if inner.casefold() == "kiro-cli" else None
        if inner == _CLI and outer == _SESSIONS:
            kind = os.path.splitext(name)[1]
            return {".jsonl": "transcript", ".json": "document"}.get(kind)
        if outer == _WORKSPACES and name.endswith(".json"):
            return "sidecar" if name == _LIST else "document"
        return "transcript" if inner == SUBAGENTS and name.endswith(".jsonl") else None

    def claims(self, path: str, head: bytes) -> bool:
        if _SAVED.match(head) and b'"history"' in head:
            return True
        first = head.partition(b"\n")[0]
        if b'"payload"' in first and b'"timestamp"' in first and b'"type"' in first:
            return os.path.basename(path) == MESSAGES or b'"executionId"' in head
        return b'"version":"v1"' in first and b'"kind":"' in first and b'"message_id"' in first

    def enters(self, directory: str) -> bool:
        return os.path.basename(directory) not in ("snapshots", "tool-outputs")

    def sidecars(self, path: str) -> Sequence[str]:
        folder, name = os.path.split(path)
        if name == _DATABASE:
            return super().sidecars(path)
        if os.path.basename(os.path.dirname(folder)) == _WORKSPACES:
            return (os.path.join(folder, _LIST),)
        facts = facts_of(path)
        return () if facts == path else (facts,)

    def owner(self, sidecar: str) -> str:
        folder, name = os.path.split(sidecar)
        return folder if name == _LIST else super().owner(sidecar)

    def readers(self, path: str) -> Sequence[str]:
        """What the title and the folder of a log are in changes without it."""
        folder, name = os.path.split(path)
        if name == SESSION:
            return (os.path.join(folder, MESSAGES),)
        if os.path.basename(folder) == _CLI and name.endswith(".json"):
            return (path + "l",)
        return ()

    def identify(self, path: str, head: bytes) -> SessionSpec:  # noqa: ARG002 - its place says all
        folder, name = os.path.split(path)
        if os.path.basename(folder) == SUBAGENTS:
            above = spec_of(facts_of(path), small_json(facts_of(path), _LARGEST))
            return SessionSpec(
                os.path.splitext(name)[0],
                kind="subagent",
                parent=above.native_id,
                project=above.project,
            )
        return spec_of(path, small_json(facts_of(path), _LARGEST))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.sources.kiro.log import KiroParser  # when something changed

        return KiroParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session = "sess_d0c70000-0000-4000-8000-0000000000ab"
        record = {
            "id": "d0c70000-0000-4000-8000-0000000000ac",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "payload": {"type": "user", "content": f"put the {word} on"},
        }
        path = os.path.join(self.places()[0], "d0c7", session, MESSAGES)
        return {path: orjson.dumps(record) + b"\n"}


class _Documents:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.kiro import documents  # when something changed

        folder, name = os.path.split(path)
        if _SAVED.match(data):
            from sessiond.sources.kiro.table import saved_conversation

            yield saved_conversation(path, data)
        elif os.path.basename(os.path.dirname(folder)) == _WORKSPACES:
            yield documents.editor_session(
                path, data, small_file(os.path.join(folder, _LIST), _LARGEST)
            )
        elif name == SESSION:
            yield documents.described_session(path, data)
        else:
            yield documents.turns(path, data)


class _Databases:
    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        from sessiond.engines.databases import TableReader  # when something changed
        from sessiond.sources.kiro.table import KiroTables

        yield from TableReader(KiroTables()).conversations(foreign, known, state)


SOURCE = KiroSource
