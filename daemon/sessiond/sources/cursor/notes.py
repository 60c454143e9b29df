"""What a composer says beside its bubbles: the summary of the conversation, and its to-do list.

Both are archived and read as bubbles of their own kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sess_schema import labels
from sessiond.sourcekit.base import Event, Record
from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.cursor.richtext import structured

_SUMMARY, _TODOS = "summary", "todos"
_MARKS = {"completed": "x", "in_progress": "~", "cancelled": "-"}


class Note(NamedTuple):
    bubble_id: str
    bubble: dict[str, Any]
    after: str | None = None  # the bubble that it follows; otherwise it is the last one


def notes_of(facts: dict[str, Any], composer_id: str) -> list[Note]:
    found = []
    latest = as_dict(facts.get("latestConversationSummary"))
    if text := summary_text(latest.get("summary")):
        covered = as_dict(latest.get("summary")).get("truncationLastBubbleIdInclusive")
        after = as_text(latest.get("lastBubbleId")) or as_text(covered)
        bubble = {"type": _SUMMARY, "text": text}
        found.append(Note(f"{composer_id}-{_SUMMARY}", bubble, after))
    todos = facts.get("todos")
    if isinstance(todos, list) and _lines(todos):
        found.append(Note(f"{composer_id}-{_TODOS}", {"type": _TODOS, "todos": todos}))
    return found


def read_note(bubble: dict[str, Any]) -> Record | None:
    """The record of a note; None if the bubble is a message."""
    if bubble.get("type") == _SUMMARY:
        text = summary_text(bubble.get("text"))
        return Record(_SUMMARY, events=[Event("summary", text, label=labels.COMPACT)])
    if bubble.get("type") == _TODOS and isinstance(bubble.get("todos"), list):
        text = "\n".join(_lines(bubble["todos"]))
        return Record(_TODOS, events=[Event("system", text, label=labels.TODO)])
    return None


def summary_text(value: Any) -> str:
    """The text of a summary, which newer versions put into an object or a string of JSON."""
    value = structured(value)
    if isinstance(value, dict):
        value = value.get("summary")
    return value.strip() if isinstance(value, str) else ""


def _lines(todos: list[Any]) -> list[str]:
    entries = (as_dict(structured(todo)) for todo in todos)
    texts = [(as_text(entry.get("content")), entry.get("status")) for entry in entries]
    return [f"[{_MARKS.get(str(status), ' ')}] {text}" for text, status in texts if text]
