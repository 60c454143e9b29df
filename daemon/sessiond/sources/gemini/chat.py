"""Parses the log of a chat: messages, newer versions of them, and operations on earlier ones.

A message is written again whenever one of its calls ends; the last version counts. `$rewindTo`
takes back a message and everything after it. `$set.messages` and `$patch` change the model's
context: after a compression it is shorter than the chat, so they take nothing back.
"""

from __future__ import annotations

from typing import Any

from sessiond.sourcekit.base import TITLE_AI, Record, Retire, SessionSpec, Title, Usage
from sessiond.sourcekit.ids import scoped
from sessiond.sourcekit.values import as_dict, as_text, as_time
from sessiond.sources.gemini.messages import Answered, read_message
from sessiond.sources.gemini.projects import with_digest


class GeminiParser:
    """Parses the lines of one chat into records."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._digest: str | None = as_text(state.get("project"))
        self._started = state.get("begun") is True  # the log has messages
        self._answered = Answered(state.get("answered"))

    def state(self) -> dict[str, Any]:
        kept = {"project": self._digest, "begun": self._started}
        return kept | {"answered": self._answered.state()}

    def parse(self, value: dict[str, Any]) -> Record:
        if "$rewindTo" in value:
            return self._rewind(value)
        if "$set" in value:
            return self._facts("set", as_dict(value["$set"]), "/$set")
        if "type" in value:
            return self._message(value)
        if "sessionId" in value or "startTime" in value:
            return self._facts("metadata", value, "")
        record = Record("patch" if "$patch" in value else "other")
        if record.kind == "other":
            record.warnings.append("record of an unknown kind")
        return record

    def _message(self, value: dict[str, Any]) -> Record:
        self._started = True
        record = read_message(value)
        self._answered.compare(record)
        self._name(record)
        if record.native_id:
            record.retires.append(Retire(record.native_id))
        return record

    def _name(self, record: Record) -> None:
        record.native_id = scoped(self._session, record.native_id)
        if record.usage is not None:
            record.usage.message_id = record.native_id

    def _rewind(self, value: dict[str, Any]) -> Record:
        record = Record("rewind", role="system")
        message = scoped(self._session, as_text(value["$rewindTo"]))
        if message is None:
            record.warnings.append("a rewind names no message")
        else:
            record.retires.append(Retire(message, onward=True))
        return record

    def _facts(self, kind: str, facts: dict[str, Any], place: str) -> Record:
        record = Record(kind, role="system")
        record.ts = as_time(facts.get("startTime" if kind == "metadata" else "lastUpdated"))
        self._digest = as_text(facts.get("projectHash")) or self._digest
        if self._digest and isinstance(facts.get("directories"), list):
            record.cwd = with_digest({self._digest}, facts["directories"])
        if summary := as_text(facts.get("summary")):
            record.titles.append(Title(summary, TITLE_AI))
        if isinstance(facts.get("messages"), list):
            self._context(record, facts["messages"], f"{place}/messages")
        return record

    def _context(self, record: Record, messages: list[Any], place: str) -> None:
        """Read the model's context: all of it before the first message, then only summaries."""
        used: list[Usage] = []
        for number, value in enumerate(messages):
            if not isinstance(value, dict):
                record.warnings.append(f"message {number} is not an object")
                continue
            message = read_message(value, f"{place}/{number}")
            self._answered.compare(message)
            self._name(message)
            if self._started:
                record.events += [event for event in message.events if event.type == "summary"]
                continue
            record.events += message.events
            record.results += message.results
            record.titles += message.titles
            record.links += message.links
            record.warnings += message.warnings
            record.model = message.model or record.model
            if message.usage is not None:
                message.usage.request_id = message.usage.message_id  # one of several in this record
                used.append(message.usage)
        if used:
            record.usage, *record.advice = used
        self._started = self._started or any(event.type == "user" for event in record.events)
