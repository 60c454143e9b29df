"""Records as rows: those of the slice that is being read, until a query needs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apsw

from sess_schema.ids import NO_SOURCE, RecordId, SessionId, SourceId
from sess_schema.short_keys import short_key
from sessiond.engines.slices import PlacedRecord
from sessiond.reading.tracked import Tracked

_INSERT = (
    "INSERT INTO records (id, source_id, session_id, offset, length, line, kind, role,"
    " native_id, native_key, parent_id, ts, ts_from, digest, forked, copy_of)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
TWIN = "id, session_id, source_id, retired, superseded, forked, copy_of"


def same_moment(one: str, other: str) -> str:
    """In SQL: two records say the same at the same time, as copies with other ids do."""
    return (
        f"{one}.ts = {other}.ts AND {one}.digest & 65535 = {other}.digest & 65535"
        f" AND {one}.digest = {other}.digest"
    )


@dataclass(slots=True)
class Twin:
    """A record with the same content as one that is being read; the fields are `TWIN`."""

    id: RecordId
    session_id: SessionId
    source_id: SourceId
    retired: int
    superseded: int
    forked: int
    copy_of: RecordId | None

    @property
    def is_gone(self) -> bool:
        """Whether it is no longer in its file, or a later record replaced it."""
        return bool(self.retired or self.superseded)


class RecordRows:
    """The rows of a transaction."""

    def __init__(self, db: apsw.Connection, on_flush: Callable[[], None]) -> None:
        self._db = db
        self._on_flush = on_flush  # what waits for records to be in the index
        self._next_id: int | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._unwritten: dict[RecordId, Twin] = {}
        # Of removed records, by source and offset.
        self._ids: dict[tuple[SourceId, int], RecordId] = {}

    def new_id(self) -> RecordId:
        if self._next_id is None:
            self._next_id = self._db.execute("SELECT coalesce(max(id), 0) FROM records").get
        self._next_id += 1
        return RecordId(self._next_id)

    def reuse(self, ids: dict[tuple[SourceId, int], RecordId]) -> None:
        """Give records that are added again the ids under which they were removed."""
        self._ids = ids

    def id_at(self, source: Tracked, offset: int) -> RecordId:
        """The id of a record that is being added."""
        known = self._ids.pop((source.id or NO_SOURCE, offset), None)
        return known or self.new_id()

    def add(self, source: Tracked, session_id: SessionId, placed: PlacedRecord) -> Twin:
        """Collect a row; return it as what later records may repeat."""
        record = placed.record
        self._rows.append(
            (
                placed.id,
                source.id,
                session_id,
                placed.offset,
                placed.length,
                placed.line,
                record.kind,
                record.role,
                record.native_id,
                short_key(record.native_id) if record.native_id is not None else None,
                record.parent_id,
                record.ts,
                record.ts_from,
                placed.digest,
                int(record.forked),
                placed.copy_of,
            )
        )
        twin = Twin(
            placed.id, session_id, source.id or NO_SOURCE, 0, 0, int(record.forked), placed.copy_of
        )
        self._unwritten[placed.id] = twin
        return twin

    def twin(self, record_id: RecordId) -> Twin:
        return self._unwritten.get(record_id) or Twin(
            *next(self._db.execute(f"SELECT {TWIN} FROM records WHERE id = ?", (record_id,)))
        )

    def flush(self) -> None:
        """Write the collected rows, and what belongs to them."""
        self._db.executemany(_INSERT, self._rows)
        self._rows = []
        self._unwritten.clear()
        self._on_flush()
