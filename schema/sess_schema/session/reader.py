"""The events of one session, in the order of its records, and what the archive adds to them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import apsw

from sess_schema import citations, edits
from sess_schema.edits import Edit
from sess_schema.records import Records
from sess_schema.session import shown

EVERYTHING = 1 << 30  # characters: more than any text has
_BATCH = 64  # events whose texts are in memory at a time
_COLUMNS = (
    "SELECT e.id, e.type, e.label, e.tool, e.status, e.ts, e.duration_ms, e.summary,"
    " e.images, e.call_id, e.pointer, e.result_pointer, e.overflow, e.retired, e.session_id,"
    " e.unjoined, e.kind, substr(x.text, 1, ?2), substr(x.input, 1, ?2),"
    " substr(x.output, 1, ?2), o.source_id, o.retired, o.offset, o.length,"
    " r.source_id, r.retired, r.offset, r.length"
    " FROM events e JOIN turns o ON o.id = e.turn_id JOIN event_texts x ON x.id = e.id"
    " LEFT JOIN turns r ON r.id = e.result_turn_id WHERE e.id IN (SELECT value FROM json_each(?1))"
)

Place = tuple[int, int, int, int]  # source, retired, offset and length of a record


@dataclass(frozen=True, slots=True)
class Entry:
    """One event with its texts."""

    event: int
    type: str
    label: str | None
    tool: str | None
    status: str | None
    ts: int | None
    duration_ms: int | None
    summary: str | None
    images: int
    call_id: str | None
    pointer: str | None  # to the input in its record
    result_pointer: str | None
    overflow: str | None  # the file that has the whole output
    retired: int
    owner: int  # the session it was first written in
    unjoined: str | None  # a result that is an event of its own: orphan, answer
    call_kind: str | None  # of calls: shell, read, edit ...
    text: str
    input: str
    output: str
    place: Place
    result_place: Place | None


class Reader:
    """Reads one session; all that it reads of the archive goes through the same `Records`."""

    def __init__(
        self,
        db: apsw.Connection,
        session: int,
        *,
        superseded: bool = False,
        records: Records | None = None,
    ) -> None:
        """`superseded`: also what was rewritten, replaced or taken back since."""
        self._db = db
        self._session = session
        self._superseded = superseded
        self.records = records or Records(db)

    @cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        """Every event once, in order, with the source and offset this session has it at."""
        current = "" if self._superseded else f" AND {shown.CURRENT}"
        found: dict[int, tuple[int, int]] = {}
        for event, source, offset in self._db.execute(
            f"SELECT e.id, t.source_id, t.offset FROM {shown.EVENTS}"
            f" WHERE t.session_id = ?{current} {shown.IN_ORDER}",
            (self._session,),
        ):
            found.setdefault(event, (source, offset))
        return found

    @cached_property
    def keys(self) -> citations.Keys:
        """What the events are cited by."""
        return citations.of_session(self._db, self._session)

    @cached_property
    def order(self) -> list[int]:
        return [*self.places]

    def holds(self, event: int) -> bool:
        return event in self.places

    def entries(self) -> Iterator[Entry]:
        """All events in order with their whole texts, read as they are asked for."""
        for start in range(0, len(self.order), _BATCH):
            yield from self.some(self.order[start : start + _BATCH])

    def some(self, events: Sequence[int], most: int = EVERYTHING) -> list[Entry]:
        """These events, with the first `most` characters of each text."""
        found: dict[int, Entry] = {}
        columns: tuple[Any, ...]
        for columns in self._db.execute(_COLUMNS, (json.dumps([*events]), most)):
            *said, result = *columns[:-8], columns[-8:-4], columns[-4:]
            said.append(result if result[0] is not None else None)
            found[columns[0]] = Entry(*said)
        return [found[event] for event in events if event in found]

    # -- what the archive adds

    def input(self, entry: Entry) -> Any:
        """A tool's input as the agent wrote it; its text where the record no longer tells."""
        if entry.pointer is not None:
            value = self.records.value(entry.place, entry.pointer)
            if value is not None:
                return value
        return entry.input or None

    def result(self, entry: Entry, pointer: str | None = None) -> Any:
        """What a tool gave back as the agent wrote it, or another value of that record."""
        if entry.result_place is None or entry.result_pointer is None:
            return None
        return self.records.value(entry.result_place, pointer or entry.result_pointer)

    def result_bytes(self, entry: Entry) -> bytes:
        """The record that has the result; empty where there is none."""
        if entry.result_place is None or not entry.result_pointer:
            return b""
        return self.records.bytes_of(entry.result_place)

    def record(self, entry: Entry) -> Any:
        """The whole record that has the event."""
        return self.records.value(entry.place, "")

    # -- what else is known about an event

    @cached_property
    def _files(self) -> dict[int, list[dict[str, str]]]:
        found: dict[int, list[dict[str, str]]] = {}
        for event, path, action in self._db.execute(
            "SELECT event_id, path, action FROM files"
            " WHERE event_id IN (SELECT value FROM json_each(?)) ORDER BY 1, 2, 3",
            (json.dumps(self.order),),
        ):
            found.setdefault(event, []).append({"path": path, "action": action})
        return found

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

    def edits(self, event: int) -> list[Edit]:
        """What a call changed in files."""
        return edits.of_event(self._db, event) if event in self._edited else []

    def files(self, event: int) -> list[dict[str, str]]:
        """The files that a call touched, with the action: read, write, edit."""
        return self._files.get(event, [])
