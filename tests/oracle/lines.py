"""JSON lines as agents leave them: torn, glued, in odd encodings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_DECODER = json.JSONDecoder(strict=False)


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Every object in the file; of a broken line, the objects that are whole in it."""
    for line in path.read_bytes().split(b"\n"):
        yield from in_line(line.decode("utf-8", "replace").strip("\r \t\x00\ufeff"))


def in_line(text: str) -> Iterator[dict[str, Any]]:
    at = 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            if at > 1 and '{"' not in text[at:]:
                return
            at = text.find('{"', at)
            if at < 0:
                return
            continue
        if isinstance(value, dict):
            yield value
        at = end


def moment(value: Any) -> str | None:
    """A timestamp in one form, or None if it is no time."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    found = found.astimezone(UTC)
    if found.year < 2000:
        return None
    return f"{found:%Y-%m-%dT%H:%M:%S}.{found.microsecond // 1000:03}Z"
