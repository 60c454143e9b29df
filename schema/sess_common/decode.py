"""Decodes bytes to JSON values, even damaged ones. Both programs must decode alike."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

# Where a record can start inside a line that a crash glued together.
_RECORD_START = re.compile(
    rb'\{"(?:parentUuid|type|uuid|sessionId|isSidechain|timestamp|logicalParentUuid|summary|role)"'
)
_ENVELOPE = frozenset(("uuid", "sessionId", "timestamp", "message", "leafUuid", "payload"))
_LONGEST_SALVAGED = 8 << 20
_MOST_STARTS = 64
_MOST_TRIES = 256
_MOST_TRIED = 64 << 20  # bytes
_DIGITS_PYTHON_CONVERTS = 4000
_MOST_VALUES = 1_000_000  # each takes up to 200 bytes of memory
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


@dataclass(slots=True, frozen=True)
class Piece:
    """One section of a line: a value, or bytes that are not JSON."""

    start: int
    end: int
    value: Any
    problem: str | None  # why there is no value, or what was repaired to get it
    broken: bool = False


def is_crowded(raw: bytes) -> bool:
    """Whether JSON has so many values that decoding it would take many times its size."""
    if len(raw) < 2 * _MOST_VALUES or _structure(raw, 0, len(raw)) <= _MOST_VALUES:
        return False
    values = end = 0
    for string in _STRING.finditer(raw):
        values += _structure(raw, end, string.start())
        end = string.end()
        if values > _MOST_VALUES:
            return True
    return values + _structure(raw, end, len(raw)) > _MOST_VALUES


def _structure(raw: bytes, start: int, end: int) -> int:
    """Each value but the first of an array or object follows one of these."""
    return sum(raw.count(mark, start, end) for mark in (b",", b"[", b"{"))


def decode(raw: bytes) -> tuple[Any, str | None]:
    """The value and what had to be repaired; raises ValueError if it is not JSON."""
    if is_crowded(raw):
        raise ValueError(f"more than {_MOST_VALUES:,} values")
    try:
        return orjson.loads(raw), None
    except orjson.JSONDecodeError as error:
        first_problem = str(error)
    if len(raw) > _LONGEST_SALVAGED:  # repairing takes up to fifteen times the size in memory
        raise ValueError(f"not JSON: {first_problem.partition(':')[0]}")
    text = raw.decode("utf-8", "replace")
    stripped = text.lstrip("\0")
    try:
        value = json.loads(stripped, strict=False, parse_int=_lenient_int)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError(f"not JSON: {first_problem.partition(':')[0]}") from None
    try:
        value = _without_surrogates(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if len(stripped) != len(text):
        return value, "NUL bytes before the record"
    if "\ufffd" in text and b"\xef\xbf\xbd" not in raw:
        return value, "bad UTF-8 replaced"
    return value, "unusual JSON: lone surrogate, control character or number"


def split_line(line: bytes) -> list[Piece]:
    """A line as one value, or as the values and torn bytes that were glued together."""
    try:
        value, problem = decode(line)
    except ValueError as error:
        problem = str(error)
    else:
        return [Piece(0, len(line), value, problem)]
    pieces = _glued(line)
    if any(not piece.broken for piece in pieces):
        return pieces
    return [Piece(0, len(line), None, problem, broken=True)]


def _glued(line: bytes) -> list[Piece]:
    if len(line) > _LONGEST_SALVAGED:
        return []
    starts = [match.start() for match in _RECORD_START.finditer(line)]
    if len(starts) > _MOST_STARTS:  # complete records are at the ends
        starts = starts[: _MOST_STARTS // 2] + starts[-_MOST_STARTS // 2 :]
    pieces: list[Piece] = []
    done = tries = tried = 0
    for number, start in enumerate(starts):
        if start < done:
            continue
        for end in [len(line), *reversed(starts[number + 1 :])]:
            candidate = line[start:end].rstrip(b" \t\r\0")
            if not candidate.endswith(b"}") or tries == _MOST_TRIES or tried > _MOST_TRIED:
                continue
            tries += 1
            tried += len(candidate)
            value = _record_or_none(candidate)
            if value is None:
                continue
            if start > done:
                pieces.append(Piece(done, start, None, "torn record", broken=True))
            pieces.append(Piece(start, end, value, "records glued into one line"))
            done = end
            break
    if done < len(line) and pieces:
        pieces.append(Piece(done, len(line), None, "torn record", broken=True))
    return pieces


def _record_or_none(candidate: bytes) -> dict[str, Any] | None:
    """A complete record, not a block inside a torn one."""
    try:
        value = orjson.loads(candidate)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict) and "type" in value and not _ENVELOPE.isdisjoint(value):
        return value
    return None


def _lenient_int(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS_PYTHON_CONVERTS else float(digits)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(inner) for inner in value]
    return value


def at_pointer(value: Any, pointer: str) -> Any:
    """The value that an RFC 6901 pointer leads to, or None."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
