"""JSON values of records: their text and images, as JSON for programs, and as people read it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_DEEPEST_IMAGE = 12
_DEEPEST_BLOCK = 8
_LARGEST = 100_000  # characters
_DEEPEST_INDENT = 30
_PIECE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


@dataclass(slots=True, frozen=True)
class Image:
    media: str  # a type that browsers display and that cannot run code
    data: str  # base64


def as_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits, and lone surrogates
        return json.dumps(value, ensure_ascii=True).encode()


def text_in(value: Any) -> str:
    """The text of a result, whatever its shape."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        text = value.get("text")
        return text if isinstance(text, str) else ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_in, value)))
    return ""


def block_in(value: Any, kind: str | None, said: str, depth: int = 0) -> dict[str, Any] | None:
    """The object of this type whose first words these are; None if there is none."""
    if isinstance(value, dict):
        if value.get("type") == kind and _says(value, said.partition("\n")[0]):
            return value
        inside = [*value.values()]
    else:
        inside = value if isinstance(value, list) else []
    if depth > _DEEPEST_BLOCK:
        return None
    blocks = (block_in(inner, kind, said, depth + 1) for inner in inside)
    return next((block for block in blocks if block is not None), None)


def _says(value: Any, words: str, depth: int = 0) -> bool:
    if isinstance(value, str):
        return words in value
    if depth > _DEEPEST_BLOCK or not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return any(_says(inner, words, depth + 1) for inner in inside)


def images_in(value: Any) -> list[Image]:
    """Every image in a value, in any agent's format."""
    return [*_images(value, 0)]


def _images(value: Any, depth: int) -> Iterator[Image]:
    if depth > _DEEPEST_IMAGE:
        return
    if isinstance(value, dict):
        media = value.get("media_type") or value.get("mimeType") or value.get("mime_type")
        data = value.get("data")
        if media in _SHOWN and isinstance(data, str):
            yield from _image(media, data)
            return
        for inner in value.values():
            yield from _images(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _images(inner, depth + 1)
    elif isinstance(value, str) and value.startswith("data:image/"):
        head, _, data = value.partition(";base64,")
        if head.removeprefix("data:") in _SHOWN:
            yield from _image(head.removeprefix("data:"), data)


def _image(media: str, data: str) -> Iterator[Image]:
    """Only data that decodes: nothing else may enter a page."""
    from binascii import Error, a2b_base64  # few sessions have images

    try:
        raw = a2b_base64(data.encode("ascii", "replace"))
    except (Error, ValueError):
        return
    if raw:
        yield Image(media, b64encode(raw).decode())


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


def readable(value: Any) -> str | None:
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
