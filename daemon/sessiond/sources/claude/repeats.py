"""Detects what a file repeats, from record to record and from run to run.

One response spans several lines that may repeat its earlier blocks, and titles and other notes are
appended repeatedly. The state is small, bounded JSON.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

_MESSAGES = 4  # responses of a session and its sidechains that may be written at once
_BLOCKS = 256
_NOTES = 32
_CALLS = 16


def _digest(kind: str, text: str) -> str:
    return blake2b(f"{kind}\0{text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


class Repeats:
    """What a parser remembers, besides the last time."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._messages: dict[str, list[str]] = {}
        messages = state.get("messages")
        if isinstance(messages, dict):
            self._messages = {
                key: [seen for seen in blocks if isinstance(seen, str)]
                for key, blocks in messages.items()
                if isinstance(blocks, list)
            }
        self._notes = _only_strings(state.get("notes"))
        self._calls = _only_strings(state.get("calls"))

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        if self._messages:
            state["messages"] = {key: list(seen) for key, seen in self._messages.items()}
        if self._notes:
            state["notes"] = dict(self._notes)
        if self._calls:
            state["calls"] = dict(self._calls)
        return state

    def response(self, message_id: str | None, request_id: str | None) -> Response:
        """The known blocks of one response; without an id nothing is a repeat."""
        if message_id is None:
            return Response([])
        # Some gateways give every response the same id.
        key = f"{message_id}\n{request_id or ''}"
        seen = self._messages.pop(key, [])
        self._messages[key] = seen
        if len(self._messages) > _MESSAGES:
            del self._messages[next(iter(self._messages))]
        return Response(seen)

    def forget_responses(self) -> None:
        """After a new prompt, nothing belongs to an earlier response."""
        self._messages.clear()

    def is_new_note(self, kind: str, text: str) -> bool:
        """Whether a note differs from the last one of its kind."""
        digest = _digest(kind, text)
        if self._notes.get(kind) == digest:
            return False
        self._notes.pop(kind, None)
        self._notes[kind] = digest
        if len(self._notes) > _NOTES:
            del self._notes[next(iter(self._notes))]
        return True

    def open_call(self, tool: str, call_id: str) -> None:
        """Remember an old top-level call: its result names the tool, not the call."""
        self._calls.pop(tool, None)
        self._calls[tool] = call_id
        if len(self._calls) > _CALLS:
            del self._calls[next(iter(self._calls))]

    def close_call(self, tool: str) -> str | None:
        return self._calls.pop(tool, None)


class Response:
    """The blocks of one response that earlier lines had."""

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen
        self._before = frozenset(seen)

    def is_new(self, kind: str, text: str) -> bool:
        """Whether no earlier line had this block; equal blocks in one line are two blocks."""
        digest = _digest(kind, text)
        if digest in self._before:
            return False
        if len(self._seen) < _BLOCKS:
            self._seen.append(digest)
        return True


def _only_strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}
