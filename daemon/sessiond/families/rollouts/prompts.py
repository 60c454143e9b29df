"""Reads messages with the user role: what a person typed, and what the client added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import Event, Record

_TAG = re.compile(r"<([a-zA-Z][a-zA-Z_]*)(?: [^>\n]{0,200})?>")
_TAGS = frozenset(
    {
        *("INSTRUCTIONS", "collaboration_mode", "hook_prompt", "model_switch", "permissions"),
        *("personality_spec", "realtime_conversation", "recommended_plugins", "skill"),
        *("turn_aborted", "user_action", "user_shell_command"),
    }
)
_TAG_ENDINGS = ("_context", "_instructions", "_notification")
_OPENINGS = {
    "# AGENTS.md instructions": labels.NESTED_MEMORY,
    "Warning: apply_patch was requested": "warning",
    "Warning: The maximum number of unified exec": "warning",
    "Warning: Your account was flagged for": "warning",
}
_SHARED = {
    "INSTRUCTIONS": labels.NESTED_MEMORY,
    "user_instructions": labels.NESTED_MEMORY,
    "environment_context": labels.CONTEXT,
    "user_action": "review",
}
_TAG_STARTS = ("external_",)
_REQUEST = re.compile(r"^## My request for \w{1,40}:", re.MULTILINE)
# Kinds of content that a person gave, beside `user.*`.
_GIVEN = frozenset(
    {"", "unknown", "images.preparation_error", "images.unsupported", "audio.unsupported"}
)
_IMAGE_TAGS = re.compile(r"</?image\b[^>\n]{0,400}>")


def texts_of(content: Any) -> Iterator[tuple[int, str]]:
    """(index, text) pairs of a message's content, in any of its forms."""
    if isinstance(content, str):
        yield 0, content
    elif isinstance(content, list):
        for number, item in enumerate(content):
            if isinstance(item, str):
                yield number, item
            elif isinstance(item, dict) and isinstance(item.get("text"), str):
                yield number, item["text"]


def joined(content: Any) -> str:
    return "\n".join(text for _, text in texts_of(content)).strip()


def images_of(content: Any) -> int:
    if not isinstance(content, list):
        return 0
    return sum(isinstance(item, dict) and bool(item.get("image_url")) for item in content)


def read_prompt(record: Record, content: Any, marks: Any = None) -> None:
    """Add the events of a user message; `marks` give the kind of each item of the content."""
    typed: list[str] = []
    matching = isinstance(marks, list) and isinstance(content, list) and len(marks) == len(content)
    for number, raw in texts_of(content):
        text = raw.strip()
        if not text or _IMAGE_TAGS.fullmatch(text):
            continue
        label = _label(text, marks[number] if matching else None)
        if label is not None:
            record.events.append(Event("system", text, label=label))
            continue
        match = _REQUEST.search(text)
        request = text[match.end() :].strip() if match else ""
        context = text[: match.start()].strip() if match else ""
        if request and context:
            record.events.append(Event("system", context, label=labels.CONTEXT))
        typed.append(request or text)
    record.ask("\n".join(typed), images_of(content))


def _label(text: str, mark: Any) -> str | None:
    """The label of text that the client added, or None if a person typed it."""
    if isinstance(mark, str):
        return None if mark.startswith("user.") or mark in _GIVEN else mark
    for opening, label in _OPENINGS.items():
        if text.startswith(opening):
            return label
    match = _TAG.match(text)
    if match and (
        match[1] in _TAGS or match[1].endswith(_TAG_ENDINGS) or match[1].startswith(_TAG_STARTS)
    ):
        return _SHARED.get(match[1], match[1])
    return None
