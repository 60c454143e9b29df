"""Helps to read documents: JSON files that are rewritten whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from sess_common.decode import decode
from sessiond.sourcekit.base import Item, NotReady


def whole_json(data: bytes) -> Any:
    """The value of a document; one that is being written is not ready."""
    try:
        value, _ = decode(data)
    except ValueError:
        raise NotReady("is not complete JSON") from None
    return value


def dumped(value: Any) -> bytes:
    """Also encodes numbers beyond 64 bits and lone surrogates, which orjson rejects."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        import json  # rarely needed

        return json.dumps(value).encode()


def borrowed_times(items: Iterable[Item], began: int | None) -> dict[str, int]:
    """For `Conversation.times`: a record without a time has that of the one before it."""
    times: dict[str, int] = {}
    for item in items:
        began = item.ts or began
        if began is not None:
            times[item.key] = began
    return times
