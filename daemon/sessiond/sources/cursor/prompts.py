"""Separates what a person typed from what Cursor added around it, and reads the time in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from sess_schema import labels
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Title
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_time

_QUERY, _TIMESTAMP = "user_query", "timestamp"
_LABELS = {
    "system_reminder": labels.REMINDER,
    "system-reminder": labels.REMINDER,
    "system_notification": "notification",
    "task_notification": "notification",
}
_INJECTED = re.compile(
    r"system[_-]reminder|(?:system|task)_notification|additional_data|agent_(?:skills|transcripts)"
    r"|attached_files|available_subagent_types|code_selection|current_file|cursor_commands"
    r"|edit_history|external_links|git_status|image_files|linter_errors|manually_attached_skills"
    r"|mcp_file_system|memories|open_and_recently_viewed_files|project_layout|(?:user_)?rules"
    r"|terminal_selection|user_info|workspace_context"
)
_TAG = r"<([a-z][a-z_-]{2,60})(?:\s[^<>\n]{0,500})?>"
_TAG_ON_LINE = re.compile(rf"^[ \t]*{_TAG}", re.MULTILINE)
_TAG_NEXT = re.compile(rf"\s*{_TAG}")
_IMAGE_MARK = re.compile(r"^\[Image\][ \t]*$", re.MULTILINE)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HUMAN_TIME = re.compile(
    r"(?:[A-Za-z]{3,9},?\s+)?([A-Za-z]{3})[a-z]{0,6}\.?\s+(\d{1,2}),?\s+(\d{4}),?\s+(?:at\s+)?"
    r"(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s*([AaPp])\.?[Mm]\.?)?"
    r"\s*\(?(?:UTC|GMT)(?:\s*([+\u2212-])(\d{1,2})(?::?(\d\d))?)?\)?"
)
_LONGEST_TIME = 100


class Segment(NamedTuple):
    """A segment of a prompt."""

    name: str  # of its element; empty outside of elements
    text: str
    whole: str


def split_prompt(text: str) -> Iterator[Segment]:
    """The elements on separate lines or side by side, and the text between them."""
    done = at = 0
    plain = False
    unclosed: set[str] = set()  # to search for nothing twice
    while (tag := _TAG_NEXT.match(text, done) if at == done else None) or (
        tag := _TAG_ON_LINE.search(text, at)
    ):
        name = tag[1]
        start, at = tag.start(), tag.end()
        known = name in (_QUERY, _TIMESTAMP) or bool(_INJECTED.fullmatch(name))
        plain = plain or bool(text[done:start].strip())
        if name in unclosed or not (known or ("_" in name and not plain)):
            continue
        inner, end = _element(text, tag)
        if end < 0:
            unclosed.add(name)
            if not known or plain:
                continue
            inner, end = text[at:], len(text)
        if text[done:start].strip():
            yield Segment("", text[done:start].strip(), text[done:start])
        yield Segment(name, inner.strip(), text[start:end])
        done = at = end
    if text[done:].strip():
        yield Segment("", text[done:].strip(), text[done:])


def _element(text: str, opening: re.Match[str]) -> tuple[str, int]:
    """The inside of an element, which may contain others of its name, and its end."""
    depth, last = 1, None
    tags = re.compile(rf"<(/?){opening[1]}(?:\s[^<>\n]{{0,500}})?>")
    for tag in tags.finditer(text, opening.end()):
        depth += -1 if tag[1] else 1
        if tag[1]:
            last = tag
        if depth == 0:
            break
    return (text[opening.end() : last.start()], last.end()) if last else ("", -1)


def read_segments(record: Record, segments: list[Segment], images: int) -> None:
    """Add the events, title and time of a prompt to its record."""
    wrapped = any(segment.name == _QUERY for segment in segments)
    # A client writes no text outside its elements, so a person wrote it, maybe with elements.
    own = not wrapped and any(not segment.name for segment in segments)
    typed: list[str] = []
    for segment in segments:
        text, label = segment.text, _LABELS.get(segment.name, "context")
        if segment.name == _TIMESTAMP:
            record.ts = record.ts or read_time(text)
            continue
        if segment.name in ("", _QUERY):
            text, marks = _IMAGE_MARK.subn("", text)
            images += marks
        if segment.name == _QUERY or (not segment.name and not wrapped):
            typed.append(text.strip())
        elif own and not _INJECTED.fullmatch(segment.name):
            typed.append(segment.whole.strip())
        elif text.strip():
            record.events.append(Event("system", text.strip(), label=label))
    _add_typed(record, "\n".join(filter(None, typed)), images)


def _add_typed(record: Record, text: str, images: int) -> None:
    if text or images:
        record.events.append(Event("user", text or "[image]", images=images))
    title = prompt_title(text)
    if title:
        record.titles.append(Title(title, TITLE_PROMPT))


def read_time(text: str) -> int | None:
    """UTC milliseconds of a time as Cursor writes it for its model, or of an ISO time."""
    text = text.strip()
    found = _HUMAN_TIME.fullmatch(text) if len(text) <= _LONGEST_TIME else None
    if found is None:
        return as_time(text)
    month, day, year, hour, minute, second, half, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    clock = int(hour)
    if half:
        clock = clock % 12 + (12 if half in "Pp" else 0)
    try:
        moment = datetime(
            int(year),
            _MONTHS.index(month.lower()) + 1,
            int(day),
            clock,
            int(minute),
            int(second or 0),
            tzinfo=timezone(offset if sign == "+" else -offset) if sign else UTC,
        )
    except ValueError:
        return None
    return as_time(moment.isoformat())
