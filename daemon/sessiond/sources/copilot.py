"""GitHub Copilot CLI: event logs, sessions of its first releases, and what requests used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import orjson

from sessiond.families.copilot import CHAIN, usage_of
from sessiond.sourcekit.base import (
    DOCUMENTATION,
    Conversation,
    Event,
    Item,
    Parser,
    Record,
    Result,
    SessionSpec,
    Source,
    whole_object,
)
from sessiond.sourcekit.disk import first_object, small_file
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign, KnownRows

_SESSIONS, _EARLY = "session-state", "history-session-state"
_EVENTS, _LOG, _DOCUMENT = "events.jsonl", ".jsonl", ".json"
_FACTS = "workspace.yaml"
_STORE = "session-store.db"
_EARLY_KEYS = re.compile(rb'"(?:timeline|chatMessages)"\s*:')
_IN_LINES = frozenset({"|", "|-", "|+", ">", ">-", ">+"})


class CopilotSource(Source):
    agent = "copilot"
    title = "Copilot CLI"
    variables = ("COPILOT_HOME",)
    reads = "Event logs of sessions with their subagents, their names, and tokens per request."
    leaves = (
        ("session-store.db: turns, search index", "copies of what the event logs have"),
        ("checkpoints/, rewind-file-snapshots/, files/", "copies of files"),
        ("logs/, config.json", "the program's own log and settings"),
    )
    known_from = DOCUMENTATION
    edition = 2  # sums of several responses are told from single ones
    chain = CHAIN
    subscription = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents, self.databases = EarlySessions(), Store()
        self.whole = _EARLY_KEYS

    def places(self) -> list[str]:
        home = self.moved("COPILOT_HOME") or os.path.join(self.folders.home(), ".copilot")
        return [os.path.join(home, name) for name in (_SESSIONS, _EARLY, _STORE)]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if name == _STORE:
            return "database"
        above = os.path.basename(os.path.dirname(folder))
        if name == _EVENTS and above == _SESSIONS:
            return "transcript"
        if os.path.basename(folder) in (_SESSIONS, _EARLY):
            if name.endswith(_LOG):
                return "transcript"
            return "document" if name.endswith(_DOCUMENT) else None
        if name == _FACTS and above == _SESSIONS:
            return "sidecar"
        return None

    def claims(self, path: str, head: bytes) -> bool:
        if path.endswith(_DOCUMENT):
            return is_session(head)
        start = as_dict(first_object(head).get("data"))
        return start.get("producer") == "copilot-agent" and "vscodeVersion" not in start

    def enters(self, directory: str) -> bool:
        """Skips the copies of files that a session keeps."""
        above = os.path.basename(os.path.dirname(os.path.dirname(directory)))
        return above != _SESSIONS

    def sidecars(self, path: str) -> Sequence[str]:
        if os.path.basename(path) == _EVENTS:
            return (os.path.join(os.path.dirname(path), _FACTS),)
        return super().sidecars(path)

    def owner(self, sidecar: str) -> str:
        folder, name = os.path.split(sidecar)
        return os.path.join(folder, _EVENTS) if name == _FACTS else super().owner(sidecar)

    def identify(self, path: str, head: bytes) -> SessionSpec:
        folder, name = os.path.split(path)
        named = os.path.basename(folder) if name == _EVENTS else name.removesuffix(_LOG)
        start = as_dict(first_object(head).get("data"))
        session = as_text(start.get("sessionId")) or named
        facts = _facts(os.path.join(folder, _FACTS)) if name == _EVENTS else {}
        return SessionSpec(
            session,
            title=facts.get("name") or facts.get("summary"),
            project=facts.get("cwd"),
            resume=("copilot", "--resume", session),
        )

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.families.copilot import EventParser  # when something changed

        return EventParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session, moment = "d0c70000-0000-4000-8000-0000000000c0", "2026-01-01T00:00:00.000Z"
        start = {"sessionId": session, "producer": "copilot-agent", "version": 1}
        events = (
            {"type": "session.start", "data": start, "id": f"{session}-1"},
            {"type": "user.message", "data": {"content": f"put the {word} on"}, "id": "2"},
        )
        path = os.path.join(self.places()[0], session, _EVENTS)
        return {
            path: b"".join(orjson.dumps({**event, "timestamp": moment}) + b"\n" for event in events)
        }


def _facts(path: str) -> dict[str, str]:
    """The flat `key: value` lines that Copilot writes beside a session's events."""
    facts = {}
    lines = small_file(path).decode("utf-8", "replace").splitlines()
    for line, following in pairwise((*lines, "")):
        key, colon, value = line.partition(":")
        value = value.strip()
        if value in _IN_LINES:  # the text follows
            value = following.strip() if following.startswith(" ") else ""
        if value[:1] in ("'", '"') and value[-1:] == value[:1]:
            value = value[1:-1].replace(value[:1] * 2, value[:1])
        if colon and key.isidentifier() and value and value not in ("null", "~"):
            facts[key] = " ".join(value.split())
    return facts


# -- sessions of the first releases: one JSON document each, a timeline of what was shown

_STATES = {"failure": "error", "rejected": "denied", "denied": "denied"}


class EarlySessions:
    """Reads `{sessionId, startTime, timeline}`."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        whole = whole_object(data, "timeline", "is not a session")
        name = os.path.splitext(os.path.basename(path))[0]
        session = as_text(whole.get("sessionId")) or name
        items = []
        for number, entry in enumerate(whole["timeline"]):
            value = as_dict(entry)
            key = as_text(value.get("id")) or str(number)
            record = _record(value)
            record.native_id = f"{session}/{key}"
            items.append(Item(key, number, value=entry, record=record))
        yield Conversation(
            SessionSpec(session), items=items, created_at=as_time(whole.get("startTime"))
        )


def is_session(head: bytes) -> bool:
    return b'"sessionId"' in head and (b'"chatMessages"' in head or b'"timeline"' in head)


def _record(entry: dict[str, Any]) -> Record:
    from sessiond.families.copilot import call  # when something changed

    kind = as_text(entry.get("type")) or "unknown"
    record = Record(kind, ts=as_time(entry.get("timestamp")))
    text = (as_text(entry.get("text")) or "").strip()
    call_id = as_text(entry.get("callId"))
    if kind == "user" and text:
        record.role = "user"
        record.ask(text)
    elif kind == "copilot" and text:
        record.role = "assistant"
        record.events.append(Event("assistant", text))
    elif kind in ("tool_call_requested", "tool_call_completed"):
        record.role = "assistant"
        tool = as_text(entry.get("name")) or as_text(entry.get("toolTitle"))
        result = as_dict(entry.get("result"))
        if kind == "tool_call_requested" or not call_id:
            record.events.append(call(tool, entry.get("arguments"), call_id, "/arguments"))
        if kind == "tool_call_completed":
            output = as_text(result.get("log")) or ""
            status = _STATES.get(as_text(result.get("type")) or "", "ok")
            if call_id:
                record.results.append(Result(call_id, output, status, pointer="/result"))
            else:
                record.events[-1].status, record.events[-1].output = status, output
    elif text:
        record.events.append(Event("system", text, label=kind))
    return record


# -- what each request used: Copilot keeps it in a database of all sessions

_TABLE = "assistant_usage_events"
_COLUMNS = (
    *("id", "session_id", "model", "created_at", "input_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "output_tokens", "reasoning_tokens"),
)


class Store:
    """Reads the rows that were added since the last time; they are never changed."""

    def conversations(
        self,
        foreign: Foreign,
        known: KnownRows,  # noqa: ARG002 - ids only grow
        state: dict[str, Any],
    ) -> Iterator[Conversation]:
        if not foreign.has_table(_TABLE):
            return
        present = {name for _, name, *_ in foreign.rows(f"PRAGMA table_info({_TABLE})")}
        if not {"id", "session_id"} <= present:
            return
        chosen = ", ".join(name if name in present else "NULL" for name in _COLUMNS)
        last = as_count(state.get("last"))
        added: dict[str, list[Item]] = {}
        for row in foreign.rows(
            f"SELECT {chosen} FROM {_TABLE} WHERE id > ? AND typeof(id) = 'integer' ORDER BY id",
            (last,),
        ):
            fields = dict(zip(_COLUMNS, row, strict=True))
            last = max(last, fields["id"])
            if session := as_text(fields["session_id"]):
                added.setdefault(session, []).append(_item(session, fields))
        for session, items in added.items():
            yield self._conversation(foreign, session, items)
        state["last"] = last

    def _conversation(self, foreign: Foreign, session: str, items: list[Item]) -> Conversation:
        keys = foreign.rows(f"SELECT id FROM {_TABLE} WHERE session_id = ? ORDER BY id", (session,))
        project = None
        if foreign.has_table("sessions"):
            rows = foreign.rows("SELECT cwd FROM sessions WHERE id = ?", (session,))
            project = next((as_text(cwd) for (cwd,) in rows), None)
        return Conversation(
            SessionSpec(session, resume=("copilot", "--resume", session)),
            order=[f"{session}/{number}" for (number,) in keys],
            items=items,
            project=project,
            project_rank=1 if project else 0,
        )


def _item(session: str, fields: dict[str, Any]) -> Item:
    number = fields["id"]
    record = Record("usage", native_id=f"{session}/usage/{number}")
    record.ts, record.model = as_time(fields["created_at"]), as_text(fields["model"])
    record.usage = usage_of(
        record.native_id or "",
        record.model,
        [fields[name] for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens")],
        fields["output_tokens"],
        fields["reasoning_tokens"],
    )
    raw = {name: value for name, value in fields.items() if not isinstance(value, bytes)}
    return Item(f"{session}/{number}", number, raw=orjson.dumps(raw), record=record)


SOURCE = CopilotSource
