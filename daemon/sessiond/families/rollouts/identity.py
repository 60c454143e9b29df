"""Ids for records that have none: the same in every copy, whatever timestamp the copy has.

A fork starts with its parent's lines under new timestamps; a subagent's fork omits most of them.
So the id of a record depends on its turn and its content, not on its neighbours. In logs without
turn ids it depends on everything before the record.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import orjson

from sessiond.sourcekit.ids import is_uuid
from sessiond.sourcekit.values import as_dict, as_text

_REMEMBERED = 128  # digests of a turn's records, to number repeats


def digest(*fields: bytes) -> str:
    return blake2b(b"\0".join(fields), digest_size=12).hexdigest()


class Identity:
    """Gives ids to the records of one file, in order."""

    def __init__(self, thread: str, state: dict[str, Any]) -> None:
        self._origin = as_text(state.get("origin")) or thread
        self._turn = as_text(state.get("turn")) or ""
        self._chain = as_text(state.get("chain")) or ""
        self._counts = {
            key: count
            for key, count in as_dict(state.get("said")).items()
            if isinstance(count, int)
        }

    def state(self) -> dict[str, Any]:
        kept = {
            "origin": self._origin,
            "turn": self._turn,
            "chain": self._chain,
            "said": dict(self._counts),
        }
        return {name: value for name, value in kept.items() if value}

    @property
    def scope(self) -> str:
        """Where ids must be unique: the turn if its id is a UUID, else the thread it started in."""
        return self._turn if is_uuid(self._turn) else self._origin

    @property
    def turn(self) -> str:
        return self._turn

    def enter_thread(self, thread: str) -> None:
        """Called when the lines that follow were first written in `thread`."""
        if thread != self._origin:
            self._origin, self._turn, self._chain, self._counts = thread, "", "", {}

    def enter_turn(self, turn: str) -> None:
        if turn != self._turn:
            self._turn, self._counts = turn, {}

    def name(self, kind: str, payload: Any, *, repeatable: bool) -> str:
        """The id of the next record; `repeatable` if another record may have the same content."""
        fields = (kind.encode("utf-8", "replace"), _encoded(payload))
        if not self._turn:
            self._chain = digest(self._chain.encode(), *fields)
            return f"{self.scope}:{self._chain}"
        found = digest(self._turn.encode("utf-8", "replace"), *fields)
        return f"{self.scope}:{found}{self._repeat(found) if repeatable else ''}"

    def _repeat(self, found: str) -> str:
        key = found[:10]
        count = self._counts.pop(key, 0)
        self._counts[key] = count + 1
        if len(self._counts) > _REMEMBERED:
            del self._counts[next(iter(self._counts))]
        return f".{count}" if count else ""


def _encoded(payload: Any) -> bytes:
    try:
        return orjson.dumps(payload)
    except TypeError:  # a number or string that only the lenient decoder accepts
        return json.dumps(payload).encode()
