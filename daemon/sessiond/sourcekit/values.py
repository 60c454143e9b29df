"""Reads single values of a record, whatever type an agent may have written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import orjson

from sess_common.decode import decode
from sess_common.times import EARLIEST

# Opaque to people, or not text at all.
OPAQUE = frozenset({"base64", "data", "encrypted_content", "signature"})

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
LATEST = 1 << 45  # the year 3084
_LARGEST_COUNT = 1 << 53
_HIGHEST_COST = 1e9
LONGEST_DURATION = 30 * 24 * 3600 * 1000


def as_text(value: Any) -> str | None:
    """A non-empty string."""
    return value if isinstance(value, str) and value else None


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_count(value: Any) -> int:
    """A count; gateways write floats or strings. Anything else is 0."""
    if type(value) is int:
        return value if 0 <= value <= _LARGEST_COUNT else 0
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    return int(value) if 0 <= value <= _LARGEST_COUNT else 0


def as_dollars(value: Any) -> float | None:
    """What something cost; no number of any length is too much for it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < _HIGHEST_COST else None


def as_milliseconds(value: Any) -> int | None:
    """A duration that is plausible for a tool call."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return round(value) if 0 <= value <= LONGEST_DURATION else None


def as_time(value: Any) -> int | None:
    """UTC milliseconds of an ISO time or of a number in seconds, milli-, micro- or nanoseconds.

    None for anything before 2000: a missing time is often written as zero.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return as_time(int(value)) if 9 < len(value) < 20 and value.isdecimal() else None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        milliseconds = (moment - _EPOCH) // _MILLISECOND
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 < value < 1e20:
            return None
        unit = 1e-3 if value < 1e11 else 1 if value < 1e14 else 1e3 if value < 1e17 else 1e6
        milliseconds = round(value / unit)
    else:
        return None
    return milliseconds if EARLIEST <= milliseconds < LATEST else None


def as_local_time(value: Any, zone: tzinfo | None) -> int | None:
    """As `as_time`, but a time without a zone is that of the machine's clock."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None or moment.tzinfo is not None:
            return as_time(value)
        placed = moment.replace(tzinfo=zone) if zone else moment.astimezone()
        return as_time(placed.isoformat())
    except (ValueError, OverflowError, OSError):
        return None


def strings(value: Any, skip: frozenset[str] = frozenset()) -> Iterator[str]:
    """Every string in decoded JSON, in order; a loop, as JSON may nest deeper than the stack."""
    stack = [iter((value,))]
    while stack:
        for item in stack[-1]:
            if isinstance(item, str):
                if item:
                    yield item
            elif isinstance(item, dict):
                if skip:
                    stack.append(iter([v for k, v in item.items() if k not in skip]))
                else:
                    stack.append(iter(item.values()))
                break
            elif isinstance(item, list):
                stack.append(iter(item))
                break
        else:
            stack.pop()


def as_line(value: Any) -> bytes:
    """JSON in one line; also for numbers beyond 64 bits and lone surrogates."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        import json  # rarely needed

        return json.dumps(value).encode()


def decoded(value: Any) -> Any:
    """The JSON in a column of a database; None if it is none."""
    if not isinstance(value, (str, bytes)):
        return None
    try:
        return decode(value if isinstance(value, bytes) else value.encode("utf-8", "replace"))[0]
    except ValueError:
        return None
