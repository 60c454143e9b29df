"""Parses each record of a session: messages in blocks, and notes of the program."""

from __future__ import annotations

import re
from typing import Any

from sess_schema import kinds, labels
from sessiond.families.blocks import read_blocks
from sessiond.sourcekit.base import Event, Record, SessionSpec
from sessiond.sourcekit.ids import scoped
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import OPAQUE, as_dict, as_text, as_time, strings

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
            if text := "\n".join(strings(value, OPAQUE | {"type", "id"})).strip():
                record.events.append(Event("system", text, label=kind))
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
        ran = message.get("hookResults")
        for one in ran if isinstance(ran, list) else ():
            failed = as_dict(one).get("exitCode") not in (0, None)
            said = as_text(as_dict(one).get("stderr")) or as_text(as_dict(one).get("stdout"))
            if failed and said and said.strip():
                text = f"{hook}: {said.strip()}"
                record.events.append(Event("system", text, label=labels.HOOK_FAILED))

    @staticmethod
    def _read_compaction(record: Record, value: dict[str, Any]) -> None:
        record.events.append(Event("system", "Conversation compacted", label=labels.COMPACT))
        summary = value.get("summaryText") or value.get("summary")
        if text := "\n".join(strings(summary)).strip():
            record.events.append(Event("summary", text, label=labels.COMPACT))


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
        found = _REMINDERS.match(text) if text else None
        if text and found:
            reminders.append(found[0].strip())
            kept.append({**block, "text": text[found.end() :]})
        else:
            kept.append(block)
    return kept, reminders


def _status(output: str, status: str) -> str:
    failed = status == "error" or output.startswith(_FAILED)
    if failed:
        return "denied" if _REFUSED.search(output[:_NEAR]) else "error"
    code = _EXIT.search(output[-_NEAR:])
    return "error" if code and int(code[1]) else status
