"""Ids for records that have none: the same in every copy, whatever time the copy was given.

A fork begins with its parent's lines, stamped anew; the one of a subagent leaves most of them out.
So a record is named by its turn and what it says, not by its neighbours. Logs without ids of turns
name it by everything before it.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Any

import orjson

from sessiond.sourcekit.values import as_dict, as_text

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_REMEMBERED = 128  # texts of a turn that may be said again


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def digest(*parts: bytes) -> str:
    return blake2b(b"\0".join(parts), digest_size=12).hexdigest()


class Identity:
    """Names the records of one file in order."""

    def __init__(self, thread: str, state: dict[str, Any]) -> None:
        self._origin = as_text(state.get("origin")) or thread
        self._turn = as_text(state.get("turn")) or ""
        self._chain = as_text(state.get("chain")) or ""
        self._said = {
            key: count
            for key, count in as_dict(state.get("said")).items()
            if isinstance(count, int)
        }

    def state(self) -> dict[str, Any]:
        kept = {
            "origin": self._origin,
            "turn": self._turn,
            "chain": self._chain,
            "said": dict(self._said),
        }
        return {name: value for name, value in kept.items() if value}

    @property
    def scope(self) -> str:
        """Where ids need to differ: the turn, if its id is unique, else the thread it began in."""
        return self._turn if is_uuid(self._turn) else self._origin

    @property
    def turn(self) -> str:
        return self._turn

    def enter_thread(self, thread: str) -> None:
        """The lines that follow were first written in this thread."""
        if thread != self._origin:
            self._origin, self._turn, self._chain, self._said = thread, "", "", {}

    def enter_turn(self, turn: str) -> None:
        if turn != self._turn:
            self._turn, self._said = turn, {}

    def name(self, kind: str, payload: Any, *, repeatable: bool) -> str:
        """The id of the next record; `repeatable` if its words alone do not tell it from others."""
        parts = (kind.encode("utf-8", "replace"), _encoded(payload))
        if not self._turn:
            self._chain = digest(self._chain.encode(), *parts)
            return f"{self.scope}:{self._chain}"
        found = digest(self._turn.encode("utf-8", "replace"), *parts)
        return f"{self.scope}:{found}{self._again(found) if repeatable else ''}"

    def _again(self, found: str) -> str:
        key = found[:10]
        count = self._said.pop(key, 0)
        self._said[key] = count + 1
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]
        return f".{count}" if count else ""


def _encoded(payload: Any) -> bytes:
    try:
        return orjson.dumps(payload)
    except TypeError:  # a number or a text that only a lenient reader takes
        return json.dumps(payload).encode()
