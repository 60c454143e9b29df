"""Extracts the readable texts of a tool call's arguments and results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sessiond.sourcekit.values import OPAQUE, as_text
from sessiond.sources.cursor.richtext import readable, structured

# What Cursor computes about a call or a result; nobody wrote or reads it.
MACHINERY = frozenset(
    {
        "afterContentId",
        "beforeContentId",
        "codeblockId",
        "effectiveSandboxPolicy",
        "endedReason",
        "modelCallId",
        "parsingResult",
        "repositoryInfo",
        "requestedSandboxPolicy",
        "toolCallBinary",
        "toolCallId",
    }
)
_NAMES_OF_KINDS = frozenset({*MACHINERY, "mimeType", "outputMode", "selectedTool", "type"})
_OPAQUE_MEMBER = re.compile(
    rf'"({"|".join(sorted(OPAQUE))}|toolCallBinary)\\?"\s*:\s*\\?"([^"\\]*)'
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_MIXED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[^0-9]*[0-9]")
_SHORTEST_LINE = 60  # of encoded binary data
_LONGEST_WORD = 250  # a longer one is binary data, even with letters of one case


def is_empty(value: Any) -> bool:
    """Whether a value says nothing, also as JSON in a string."""
    if isinstance(value, str):
        return not value.strip() or value.strip() in ("{}", "[]", "null", '""')
    return value is None or value is False or (isinstance(value, (dict, list)) and not value)


def loose(text: str) -> tuple[list[str], int]:
    """A text that is not JSON, or is JSON that was cut off."""
    if text.lstrip().startswith(("{", "[", '"')):
        text = _OPAQUE_MEMBER.sub(_member_or_nothing, text)
    visible, images = readable(text)
    return [visible], images


def _member_or_nothing(member: re.Match[str]) -> str:
    return '"' if member[1] not in OPAQUE or is_binary(member[1], member[2]) else member[0]


def is_binary(name: str, value: Any) -> bool:
    """Whether a value is binary data; plain text may have the same name."""
    if name not in OPAQUE:
        return False
    if isinstance(value, list):
        return any(is_binary(name, item) for item in value if isinstance(item, str))
    lines = value.split() if isinstance(value, str) else []
    if not lines or any(len(line) < _SHORTEST_LINE for line in lines[:-1] or lines):
        return False
    word = "".join(lines)
    is_unlike_words = len(word) > _LONGEST_WORD or _MIXED.match(word) is not None
    return is_unlike_words and _ENCODED.fullmatch(word) is not None


def gather(value: Any) -> tuple[list[str], int]:
    """Every readable string in decoded JSON, in order, and the number of images."""
    texts: list[str] = []
    images = 0
    stack = [iter((value,))]
    while stack:
        for item in stack[-1]:
            if isinstance(item, str):
                text, more = readable(item)
                images += more
                if text and text != "[image]":
                    texts.append(text)
            elif isinstance(item, dict):
                if _is_image(item):
                    images += 1
                    continue
                stack.append(_members(item))
                break
            elif isinstance(item, list):
                stack.append(iter(item))
                break
        else:
            stack.pop()
    return texts, images


def _members(item: dict[str, Any]) -> Iterator[Any]:
    return iter([v for k, v in item.items() if k not in _NAMES_OF_KINDS and not is_binary(k, v)])


def _is_image(item: dict[str, Any]) -> bool:
    media = as_text(item.get("mimeType")) or as_text(item.get("media_type")) or ""
    return item.get("type") == "image" or media.startswith("image/")


def error_text(value: Any) -> str:
    if is_empty(value):
        return ""
    error = structured(value)
    if isinstance(error, str):
        return loose(error)[0][0].strip()
    if isinstance(error, dict):
        seen = (error.get("clientVisibleErrorMessage"), error.get("modelVisibleErrorMessage"))
        messages = dict.fromkeys(text for text in map(as_text, seen) if text)
        if messages:
            return "\n".join(gather([*messages])[0])
    return "\n".join(gather(error)[0])
