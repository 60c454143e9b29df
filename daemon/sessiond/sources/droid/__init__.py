"""Droid (Factory): where its sessions are, and what they are called."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import orjson

from sessiond.sourcekit.base import (
    ONE_READER,
    Conversation,
    Item,
    Parser,
    Record,
    SessionSpec,
    Source,
    Usage,
)
from sessiond.sourcekit.documents import whole_json
from sessiond.sourcekit.files import first_object
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time

__all__ = ["SOURCE", "DroidSource"]

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
        from sessiond.sources.droid.records import DroidParser  # when something changed

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
        stop_reason=None,
        input_tokens=counts["input"],
        output_tokens=counts["output"] + counts["thinking"],
        cache_write_tokens=counts["cacheCreation"],
        cache_write_1h_tokens=0,
        cache_read_tokens=counts["cacheRead"],
        reasoning_tokens=counts["thinking"],
    )


_TOKENS = ("input", "output", "cacheCreation", "cacheRead", "thinking")


SOURCE = DroidSource
