"""An event as the index has it, and the one reader of a session's events.

A new column is a field here and a column in the schema: the writer stores it, `Reader` reads it,
and exports show it, all by this name. Values that agents wrote are read from the archive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import apsw

from sess_schema import archive, citations, shown
from sess_schema.archive import Damaged, RecordReader
from sess_schema.ids import NO_EVENT, NO_RECORD, NO_SESSION, EventId, RecordId, SessionId

if TYPE_CHECKING:
    from sess_schema.edits import Edit


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
EVERYTHING = 1 << 30  # characters: longer than any text
_BATCH = 64  # events whose texts are in memory at once
_SELECT = (
    f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)}, o.ts_from,"
    f" {', '.join(f'substr(x.{name}, 1, ?2)' for name in TEXTS)},"
    " o.source_id, o.retired, o.offset, o.length, r.source_id, r.retired, r.offset, r.length"
    " FROM events e JOIN records o ON o.id = e.record_id JOIN event_texts x ON x.id = e.id"
    " LEFT JOIN records r ON r.id = e.result_record_id"
    " WHERE e.id IN (SELECT value FROM json_each(?1))"
)
_NAMES = (*COLUMNS, "ts_from", *TEXTS)

Place = tuple[int, int, int, int]  # source, retired, offset and length of a record


@dataclass(slots=True, eq=False, kw_only=True)
class Entry(StoredEvent):
    """One event of a session."""

    ts_from: str | None = None  # whose time it has, if its record has none: see docs/json.md
    place: Place = (0, 0, 0, 0)
    result_place: Place | None = None


class Reader:
    """Reads one session; all archive reads go through the same `RecordReader`."""

    def __init__(
        self,
        db: apsw.Connection,
        session: SessionId,
        *,
        superseded: bool = False,
        records: RecordReader | None = None,
    ) -> None:
        """`superseded`: include events since rewritten, replaced or retracted."""
        self._db = db
        self._session = session
        self._superseded = superseded
        self.records = records or RecordReader(db)

    @cached_property
    def places(self) -> dict[EventId, tuple[int, int]]:
        """Every event once, in order, with its source and offset in this session."""
        archive.meet_losses(self._db, self._session)
        current = "" if self._superseded else f" AND {shown.CURRENT}"
        places: dict[EventId, tuple[int, int]] = {}
        for event, source, offset in self._db.execute(
            f"SELECT e.id, t.source_id, t.offset FROM {shown.EVENTS}"
            f" WHERE t.session_id = ?{current} {shown.IN_ORDER}",
            (self._session,),
        ):
            places.setdefault(event, (source, offset))
        return places

    @cached_property
    def keys(self) -> citations.Keys:
        """The keys that cite the events."""
        return citations.of_session(self._db, self._session)

    @cached_property
    def order(self) -> list[EventId]:
        return [*self.places]

    def holds(self, event: EventId) -> bool:
        return event in self.places

    def entries(self) -> Iterator[Entry]:
        """All events in order with their full texts, read lazily."""
        for start in range(0, len(self.order), _BATCH):
            yield from self.some(self.order[start : start + _BATCH])

    def some(self, events: Sequence[EventId], most: int = EVERYTHING) -> list[Entry]:
        """These events, with the first `most` characters of each text."""
        entries: dict[int, Entry] = {}
        columns: tuple[Any, ...]
        for columns in self._db.execute(_SELECT, (json.dumps([*events]), most)):
            values: dict[str, Any] = dict(zip(_NAMES, columns, strict=False))
            place, result = columns[-8:-4], columns[-4:]
            answered = None if result[0] is None else result
            entries[values["id"]] = Entry(**values, place=place, result_place=answered)
        return [entries[event] for event in events if event in entries]

    # -- from the archive

    def input(self, entry: Entry) -> Any:
        """A call's input as the agent wrote it; its text where the record has none."""
        if entry.pointer is not None:
            value = self.records.value(entry.place, entry.pointer)
            if value is not None:
                return value
        return entry.input or None

    def result(self, entry: Entry, pointer: str | None = None) -> Any:
        """A call's result as the agent wrote it, or another value of that record."""
        if entry.result_place is None or entry.result_pointer is None:
            return None
        return self.records.value(entry.result_place, pointer or entry.result_pointer)

    def result_bytes(self, entry: Entry) -> bytes:
        """The record containing the result; empty if there is none."""
        if entry.result_place is None or not entry.result_pointer:
            return b""
        try:
            return self.records.bytes_of(entry.result_place)
        except Damaged:
            return b""

    def record(self, entry: Entry) -> Any:
        """The whole record containing the event."""
        return self.records.value(entry.place, "")

    # -- files and edits

    @cached_property
    def _files(self) -> dict[int, list[dict[str, str]]]:
        files: dict[int, list[dict[str, str]]] = {}
        for event, path, action in self._db.execute(
            "SELECT event_id, path, action FROM files"
            " WHERE event_id IN (SELECT value FROM json_each(?)) ORDER BY 1, 2, 3",
            (json.dumps(self.order),),
        ):
            files.setdefault(event, []).append({"path": path, "action": action})
        return files

    @cached_property
    def _edited(self) -> set[int]:
        return {
            event
            for (event,) in self._db.execute(
                "SELECT DISTINCT event_id FROM edits"
                " WHERE event_id IN (SELECT value FROM json_each(?))",
                (json.dumps(self.order),),
            )
        }

    def edits(self, event: EventId) -> list[Edit]:
        """A call's edits to files."""
        if event not in self._edited:
            return []
        from sess_schema import edits  # few events have any

        return edits.of_event(self._db, event)

    def files(self, event: EventId) -> list[dict[str, str]]:
        """The files a call touched, with the action: read, write, edit."""
        return self._files.get(event, [])
