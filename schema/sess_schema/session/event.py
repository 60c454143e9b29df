"""An event as the index has it: its columns are written, read and exported by these names.

A new column is a field here and a column in the schema: the writer stores it, `reader` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from sess_schema.ids import NO_EVENT, NO_RECORD, NO_SESSION, EventId, RecordId, SessionId


@dataclass(slots=True, eq=False)
class EventFacts:
    """What an agent recorded of an event; a parser sets it."""

    type: str  # user, assistant, thinking, tool_use, system, summary
    text: str = ""  # of all but calls
    label: str | None = None
    tool: str | None = None
    status: str | None = None  # of calls: ok, error, denied; pending until the result arrives
    summary: str | None = None  # of calls: the input in one line
    input: str = ""  # searchable text of the tool input, values unescaped
    output: str = ""
    duration_ms: int | None = None
    images: int = 0  # in its record
    call_id: str | None = None
    pointer: str | None = None  # to the input in the raw record; one per line if it is in several
    kind: str | None = None  # of calls: shell, read, edit ...; see `sess_schema.kinds`


@dataclass(slots=True, eq=False, kw_only=True)
class StoredEvent(EventFacts):
    """A row of `events`, with its texts; 0 is an event that is not in the index."""

    id: EventId = NO_EVENT
    session_id: SessionId = NO_SESSION  # the session that had it first
    record_id: RecordId = NO_RECORD
    block: int = 0  # its number in its record
    ts: int | None = None
    result_record_id: RecordId | None = None
    result_pointer: str | None = None
    overflow: str | None = None  # the file with the full output
    retired: int = 0
    chars: int = 0  # written by the model
    unjoined: str | None = None  # a result that is a separate event: orphan, answer
    answered: int | None = None  # when the result came


FACTS: Final = tuple(field.name for field in fields(EventFacts))
TEXTS: Final = ("text", "input", "output")  # in `event_texts`
COLUMNS: Final = tuple(  # of `events`
    field.name for field in fields(StoredEvent) if field.name not in TEXTS
)
