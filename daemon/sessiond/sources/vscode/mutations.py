"""Replays the log of changes that VS Code keeps of a session; older builds wrote it whole."""

from __future__ import annotations

import re
from typing import Any

from sess_common.decode import decode
from sessiond.sourcekit.base import NotReady
from sessiond.sourcekit.documents import whole_json

_INITIAL, _SET, _PUSH, _DELETE = range(4)
_START = re.compile(rb'\s*\{\s*"kind"\s*:\s*0\b')
_LONGEST = 1 << 20  # of a list; a damaged log may name any place


def is_log(head: bytes) -> bool:
    return _START.match(head) is not None


def replayed(path: str, data: bytes) -> dict[str, Any]:
    """The session as the last change left it."""
    is_named_log = path.endswith(".jsonl")
    state = _replay(data) if is_named_log or is_log(data) else whole_json(data)
    if not isinstance(state, dict) or not isinstance(state.get("requests"), list):
        raise NotReady("is not a chat session")
    return state


def _replay(data: bytes) -> Any:
    state: Any = None
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            change, _ = decode(line)
        except ValueError:
            if number == len(lines) - 1:
                break  # it is being written
            continue
        if isinstance(change, dict):
            state = _apply(state, change)
    return state


def _apply(state: Any, change: dict[str, Any]) -> Any:
    kind, place, value = change.get("kind"), change.get("k"), change.get("v")
    if kind == _INITIAL:
        return value
    if not isinstance(place, list):
        return state
    if not place:
        return value if kind == _SET else state
    around = _at(state, place[:-1])
    if kind == _PUSH:
        held = _at(around, place[-1:])
        if not isinstance(held, list):
            held = []
            _put(around, place[-1], held)
        length = change.get("i")
        if isinstance(length, int) and 0 <= length < len(held):
            del held[length:]
        held += value if isinstance(value, list) else []
    elif kind == _SET:
        _put(around, place[-1], value)
    elif kind == _DELETE and isinstance(around, dict) and isinstance(place[-1], str):
        around.pop(place[-1], None)
    elif kind == _DELETE and isinstance(around, list) and _index(place[-1]) < len(around):
        del around[_index(place[-1])]
    return state


def _at(state: Any, place: list[Any]) -> Any:
    for step in place:
        if isinstance(state, dict) and isinstance(step, str):
            state = state.get(step)
        elif isinstance(state, list) and _index(step) < len(state):
            state = state[_index(step)]
        else:
            return None
    return state


def _put(around: Any, step: Any, value: Any) -> None:
    if isinstance(around, dict) and isinstance(step, str):
        around[step] = value
    elif isinstance(around, list) and _index(step) < len(around):
        around[_index(step)] = value
    elif isinstance(around, list) and len(around) <= _index(step) < _LONGEST:
        around += [None] * (_index(step) - len(around)) + [value]


def _index(step: Any) -> int:
    whole = isinstance(step, int) and not isinstance(step, bool)
    return step if whole and step >= 0 else _LONGEST
