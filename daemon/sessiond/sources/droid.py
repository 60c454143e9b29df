"""Droid (Factory): its sessions, and what they used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import orjson

from sess_schema import kinds, labels
from sess_schema.chains import Chain
from sessiond.families.blocks import read_blocks
from sessiond.sourcekit.base import (
    ONE_READER,
    Conversation,
    Event,
    Item,
    Parser,
    Record,
    SessionSpec,
    Source,
    Usage,
    whole_json,
)
from sessiond.sourcekit.disk import first_object
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import (
    OPAQUE,
    SCOPE,
    as_count,
    as_dict,
    as_list,
    as_text,
    as_time,
    scoped,
    strings,
)

_LOG, _SETTINGS = ".jsonl", ".settings.json"
_UNNAMED = frozenset({"new session", "untitled", "untitled session"})
_COUNTED = ("model", "providerLockTimestamp", "tokenUsage")


class DroidSource(Source):
    agent = "droid"
    title = "Droid"
    reads = "Sessions with their subagents, and the tokens of each session as a whole."
    leaves = (
        ("*.settings.json", "only the model and the tokens are read"),
        ("history.json, logs/", "prompts only, and the program's own log"),
        ("auth.*, settings.json", "sign-in data and settings"),
    )
    known_from = ONE_READER
    chain = Chain("id", "parentId", own=f"{SCOPE}(.*)", heads=("session_start",))

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Settings()

    def places(self) -> list[str]:
        home = os.path.join(self.folders.home(), ".factory")
        return [os.path.join(home, "sessions"), os.path.join(home, "projects")]

    def classify(self, path: str) -> str | None:
        if path.endswith(_LOG):
            return "transcript"
        return "document" if path.endswith(_SETTINGS) else None

    def claims(self, path: str, head: bytes) -> bool:
        if path.endswith(_SETTINGS):
            return b'"tokenUsage"' in head
        start = first_object(head)
        return start.get("type") == "session_start" and "id" in start

    def identify(self, path: str, head: bytes) -> SessionSpec:
        start = first_object(head)
        session = as_text(start.get("id")) or os.path.basename(path).removesuffix(_LOG)
        titles = (as_text(start.get(name)) for name in ("sessionTitle", "title"))
        title = next((" ".join(one.split()) for one in titles if one), None)
        if title and title.casefold() in _UNNAMED:
            title = None
        parent = as_text(start.get("callingSessionId"))
        if parent:
            return SessionSpec(
                session,
                kind="subagent",
                parent=parent,
                call_id=as_text(start.get("callingToolUseId")),
                title=title,
            )
        return SessionSpec(session, title=title, resume=("droid", "--resume", session))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        return DroidParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session, moment = "d0c70000-0000-4000-8000-0000000000d0", "2026-01-01T00:00:00.000Z"
        message = {"role": "user", "content": f"put the {word} on"}
        lines = (
            {"type": "session_start", "id": session, "cwd": "/doctor"},
            {"type": "message", "id": "1", "timestamp": moment, "message": message},
        )
        path = os.path.join(self.places()[0], "-doctor", session + _LOG)
        return {path: b"".join(orjson.dumps(line) + b"\n" for line in lines)}


class _Settings:
    """Reads what a session used so far; Droid keeps it apart and as one sum."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        settings = as_dict(whole_json(data))
        session = os.path.basename(path).removesuffix(_SETTINGS)
        model = (as_text(settings.get("model")) or "").removeprefix("custom:") or None
        record = Record("usage", native_id=f"{session}/usage", model=model)
        record.ts = as_time(settings.get("providerLockTimestamp"))
        record.usage = _usage(record.native_id or "", model, as_dict(settings.get("tokenUsage")))
        kept = {name: settings[name] for name in _COUNTED if name in settings}
        items = [Item("usage", value=kept, record=record)] if record.usage else []
        yield Conversation(SessionSpec(session), items=items, model=model)


def _usage(key: str, model: str | None, tokens: dict[str, Any]) -> Usage | None:
    counts = {name: as_count(tokens.get(f"{name}Tokens")) for name in _TOKENS}
    if not any(counts.values()):
        return None
    return Usage(
        message_id=key,
        request_id=key,
        model=model,
        input_tokens=counts["input"],
        output_tokens=counts["output"] + counts["thinking"],
        cache_write_tokens=counts["cacheCreation"],
        cache_read_tokens=counts["cacheRead"],
        reasoning_tokens=counts["thinking"],
    )


_TOKENS = ("input", "output", "cacheCreation", "cacheRead", "thinking")


# -- records: messages in blocks, and notes of the program

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("Execute", "KillProcess", "ReadProcessOutput"),
        kinds.READ: ("Read", "ViewFile", "ViewImage"),
        kinds.WRITE: ("Create", "Write"),
        kinds.EDIT: ("Edit", "MultiEdit", "ApplyPatch"),
        kinds.SEARCH: ("Grep", "Glob", "LS", "GrepTool", "GlobTool"),
        kinds.FETCH: ("WebSearch", "FetchUrl", "WebFetch"),
        kinds.AGENT: ("Task",),
        kinds.PLAN: ("TodoWrite", "ExitSpecMode", "ProposeMission"),
        kinds.QUESTION: ("AskUser", "AskUserQuestion"),
    }
)
_SILENT = frozenset({"session_start", "todo_state", "agent_turn_outcome"})
_REMINDERS = re.compile(r"\A(?:\s*<system-reminder>.*?</system-reminder>)+\s*", re.DOTALL)
_SERVER_TOOL = "___"  # between an MCP server and its tool
_FAILED = ("Error: Command failed", "Error: Tool ", "Error: User ")  # older results have no flag
_EXIT = re.compile(r"\[Process exited with code (-?\d{1,10})\]\s*\Z")
_NO = r"(?:rejected|declined|denied|cancel+ed)"
_REFUSED = re.compile(rf"user {_NO}|{_NO} by (?:the )?user", re.IGNORECASE)
_NEAR = 200


class DroidParser:
    """Reads the records of one session."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:  # noqa: ARG002 - none is kept
        self._session = spec.native_id
        self._is_subagent = spec.kind == "subagent"

    def state(self) -> dict[str, Any]:
        return {}

    def parse(self, value: dict[str, Any]) -> Record:
        kind = as_text(value.get("type")) or "unknown"
        record = Record(
            kind,
            native_id=scoped(self._session, as_text(value.get("id"))),
            parent_id=scoped(self._session, as_text(value.get("parentId"))),
            ts=as_time(value.get("timestamp")),
        )
        if kind == "session_start":
            record.cwd = as_text(value.get("cwd"))
            record.version = as_text(value.get("version"))  # a number is that of the format
        elif kind == "message":
            self._read_message(record, as_dict(value.get("message")))
        elif kind == "compaction_state":
            self._read_compaction(record, value)
        elif kind not in _SILENT:
            record.say("system", "\n".join(strings(value, OPAQUE | {"type", "id"})), kind)
            record.warnings.append("record of an unknown type")
        return record

    def _read_message(self, record: Record, message: dict[str, Any]) -> None:
        record.role = as_text(message.get("role"))
        record.model = as_text(message.get("modelId"))
        if hook := as_text(message.get("hookEventName")):
            self._read_hook(record, message, hook)
            return
        content, reminders = _without_reminders(message.get("content"), record.role)
        shown = as_text(message.get("visibility"))
        source = as_text(message.get("userMessageSource")) or "user"
        label = shown if shown in ("llm_only", "user_only") else None
        if label is None and source not in ("user", "human", "cli") and not self._is_subagent:
            label = source
        read_blocks(record, content, "/message/content", _TOOLS, lambda _text: label)
        if label is not None:  # an image that the program added is no prompt
            record.events = [event for event in record.events if event.type != "user"]
            record.titles = []
        record.events += [Event("system", text, label=labels.REMINDER) for text in reminders]
        for event in record.events:
            if event.kind == kinds.OTHER and _SERVER_TOOL in (event.tool or ""):
                event.kind = kinds.MCP
            if event.type == "tool_use" and event.status == "ok":
                event.status = _status(event.output, event.status)
        for result in record.results:
            result.status = _status(result.output, result.status)

    @staticmethod
    def _read_hook(record: Record, message: dict[str, Any], hook: str) -> None:
        for one in as_list(message.get("hookResults")):
            failed = as_dict(one).get("exitCode") not in (0, None)
            said = as_text(as_dict(one).get("stderr")) or as_text(as_dict(one).get("stdout"))
            if failed and said and said.strip():
                text = f"{hook}: {said.strip()}"
                record.events.append(Event("system", text, label=labels.HOOK_FAILED))

    @staticmethod
    def _read_compaction(record: Record, value: dict[str, Any]) -> None:
        record.say("system", "Conversation compacted", labels.COMPACT)
        summary = value.get("summaryText") or value.get("summary")
        record.say("summary", "\n".join(strings(summary)), labels.COMPACT)


def _without_reminders(content: Any, role: str | None) -> tuple[Any, list[str]]:
    """The content of a prompt without what Droid puts before its text, and that."""
    if role != "user":
        return content, []
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content, []
    kept, reminders = list[Any](), list[str]()
    for block in content:
        text = as_text(block.get("text")) if isinstance(block, dict) else None
        match = _REMINDERS.match(text) if text else None
        if text and match:
            reminders.append(match[0].strip())
            kept.append({**block, "text": text[match.end() :]})
        else:
            kept.append(block)
    return kept, reminders


def _status(output: str, status: str) -> str:
    failed = status == "error" or output.startswith(_FAILED)
    if failed:
        return "denied" if _REFUSED.search(output[:_NEAR]) else "error"
    code = _EXIT.search(output[-_NEAR:])
    return "error" if code and int(code[1]) else status


SOURCE = DroidSource
