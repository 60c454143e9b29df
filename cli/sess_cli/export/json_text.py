"""JSON as people read it."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_LARGEST = 100_000  # characters
_DEEPEST_INDENT = 30
_PIECE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


def pretty(source: str) -> str | None:
    """The same JSON tokens with one value per line; None if it is not JSON."""
    source = source.strip()
    if source[:1] not in ("{", "[") or source[-1:] not in ("}", "]"):
        return None
    if len(source) > _LARGEST or len(source) < 3:
        return None
    try:
        orjson.loads(source)
    except ValueError:
        return None
    return source if "\n" in source else _indented(source)


def written(value: Any) -> str | None:
    """A value with one member per line; None if it is too large or too deep to read."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    except RecursionError:
        return None
    return text if len(text) <= _LARGEST else None


def _indented(source: str) -> str:
    lines: list[str] = []
    depth = 0
    row = ""
    pieces = _PIECE.findall(source)
    for number, piece in enumerate(pieces):
        if piece in "{[":
            row += piece
            depth += 1
            if pieces[number + 1] not in "}]":
                lines.append(row)
                row = "  " * min(depth, _DEEPEST_INDENT)
        elif piece in "}]":
            depth -= 1
            if pieces[number - 1] not in "{[":
                lines.append(row)
                row = "  " * min(depth, _DEEPEST_INDENT)
            row += piece
        elif piece == ",":
            lines.append(row + ",")
            row = "  " * min(depth, _DEEPEST_INDENT)
        else:
            row += ": " if piece == ":" else piece
    return "\n".join([*lines, row])
