"""The line format of records, `{"composerId": ..., "bubble": {...}}`, in exports and archive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from sess_schema import labels
from sessiond.sourcekit.base import Conversation, Event, Item, Record, SessionSpec
from sessiond.sourcekit.foreign import KnownRow
from sessiond.sourcekit.values import as_dict, as_text, strings
from sessiond.sources.cursor.agent_messages import parse_message
from sessiond.sources.cursor.bubbles import parse_bubble, read_note, time_of
from sessiond.sources.cursor.changes import digest
from sessiond.sources.cursor.composers import Inline

_BUBBLE = "/bubble"


def is_envelope(value: Any) -> bool:
    return isinstance(value, dict) and "composerId" in value and "bubble" in value


def pack(
    composer_id: str,
    bubble: Any,
    *,
    raw: bytes | None = None,
    bubble_id: str | None = None,
    tool: dict[str, Any] | None = None,
    contents: Mapping[str, str] | None = None,
    summary: bool = False,
) -> bytes:
    """The line of a record; `raw` is the bubble as Cursor wrote it, kept byte for byte."""
    pieces = [b'{"composerId":', orjson.dumps(composer_id)]
    if bubble_id is not None:  # the bubble itself does not have it
        pieces += b',"bubbleId":', orjson.dumps(bubble_id)
    if tool is not None:  # kept elsewhere by older versions
        pieces += b',"tool":', _dumps(tool)
    if summary:  # written by the agent in the name of the user
        pieces.append(b',"summary":true')
    if contents:  # texts of files, which the bubble names by ids
        pieces += b',"contents":', _dumps(contents)
    one_line = raw is not None and b"\n" not in raw and b"\r" not in raw
    pieces += b',"bubble":', raw if raw is not None and one_line else _dumps(bubble), b"}"
    return b"".join(pieces)


def read(value: dict[str, Any]) -> Record:
    """The record of one decoded line."""
    bubble = value.get("bubble")
    bubble_id = as_text(value.get("bubbleId"))
    if not isinstance(bubble, dict):
        text = "\n".join(strings(bubble)).strip()
        events = [Event("system", text, label=labels.BROKEN)] if text else []
        return Record(
            "broken", native_id=bubble_id, events=events, warnings=["bubble is not an object"]
        )
    if "role" in bubble and "content" in bubble:
        summary = value.get("summary") is True
        return parse_message(bubble, pointer=_BUBBLE, native_id=bubble_id, summary=summary)
    note = read_note(bubble)
    if note is not None:
        note.native_id = bubble_id
        return note
    tool = as_dict(value.get("tool")) or None
    record = parse_bubble(
        bubble,
        pointer=_BUBBLE,
        extra_tool=tool,
        fallback_id=bubble_id,
        contents=_contents_of(value),
    )
    record.native_id = bubble_id or record.native_id
    if record.ts is None:
        _read_exported_time(record, bubble.get("timestamp") or value.get("timestamp"))
    return record


def _read_exported_time(record: Record, written: Any) -> None:
    """Exports of other programs have the time in a field that Cursor itself does not use."""
    record.ts = time_of(written)
    if record.ts is None and written and "bad timestamp" not in record.warnings:
        record.warnings.append("bad timestamp")


def _contents_of(value: dict[str, Any]) -> dict[str, str]:
    """The texts of files in one decoded line, by their ids."""
    return {k: v for k, v in as_dict(value.get("contents")).items() if isinstance(v, str)}


class CursorParser:
    """Parses the lines of exports and of the transcripts that Cursor's agent writes."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._spec = spec
        self._ended: int | None = state.get("ts")

    def parse(self, value: dict[str, Any]) -> Record:
        if is_envelope(value):
            record = read(value)
            record.session = as_text(value.get("composerId"))
        else:
            record = parse_message(value)
        if record.ts is not None:
            self._ended = record.ts
        elif self._ended is not None:
            record.ts, record.ts_from = self._ended, "previous"
        return record

    def state(self) -> dict[str, Any]:
        return {"ts": self._ended} if self._ended is not None else {}


def _dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):  # a lone surrogate cannot be encoded
        return orjson.dumps(repr(value))


# -- conversations whose bubbles are all in one value, not in rows of their own

_PLACE = 0  # they have no rowids


def add_inline(
    change: Conversation, inline: Mapping[str, Inline], known: Mapping[str, KnownRow]
) -> None:
    """Add the bubbles that are new or changed, by their keys."""
    composer_id = change.spec.native_id
    for key, (bubble_id, bubble, tool) in inline.items():
        given = None if bubble.get("bubbleId") == bubble_id else bubble_id
        raw = pack(composer_id, bubble, bubble_id=given, tool=tool)
        item = Item(key, _PLACE, digest(raw), raw)
        before = known.get(key)
        if before is not None and before.digest == item.digest:
            if before.place != _PLACE:
                change.moved.append((key, _PLACE))
            continue
        value: dict[str, Any] = {"bubble": bubble, "bubbleId": bubble_id, "tool": tool}
        item.record = read(value)
        change.items.append(item)
