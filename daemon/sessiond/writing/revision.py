"""Updates the events of a record that changed in place; unchanged ones keep their ids."""

from __future__ import annotations

import apsw

from sess_schema.ids import RecordId
from sessiond.engines.slices import content_digest
from sessiond.sourcekit.base import Record
from sessiond.writing.copies import Copies
from sessiond.writing.event_rows import AWAITS_PERSON, EventRows, Row, content_of, row_of
from sessiond.writing.sessions import Session
from sessiond.writing.usage import UsageWriter


class Revision:
    """Sets the events of a stored turn to the record's current content."""

    def __init__(
        self, db: apsw.Connection, rows: EventRows, copies: Copies, usage: UsageWriter
    ) -> None:
        self._db = db
        self._rows = rows
        self._copies = copies
        self._usage = usage

    def apply(self, session: Session, turn_id: RecordId, record: Record, *, stale: bool) -> bool:
        """False if other records are joined with the turn: it must become a new one.

        `stale`: an older edition of the reader read it.
        """
        if self._is_joined(turn_id, record):
            if stale or not self._says_the_same(turn_id, record):
                return False
            self._date(turn_id, record.ts)
            self._spend(session, turn_id, record)
            return True
        self._separate_from_copies(session, turn_id)
        rows = self._rows
        old = {row.block: row for row in rows.stored("e.turn_id = ?", turn_id)}
        hidden = self._db.execute("SELECT retired FROM turns WHERE id = ?", (turn_id,)).get
        for block, event in enumerate(record.events):
            row = old.pop(block, None)
            event_id = row.id if row else rows.new_id()
            new = row_of(event_id, session.id, (turn_id, block), record, event)
            new.retired = hidden  # a better source has the session
            if row is None:
                rows.add(new)
                continue
            rows.load(row)
            if content_of(new) != content_of(row):
                self._forget_details(row)
                new.stored = True
                rows.replace(new)
        for row in old.values():
            self._forget_details(row)
            rows.drop(row)
        self._spend(session, turn_id, record)
        return True

    def _spend(self, session: Session, turn_id: RecordId, record: Record) -> None:
        if record.model and record.model not in session.models:
            session.models.append(record.model)
        if record.usage is not None:
            self._usage.add(session, turn_id, record, record.usage)
            self._usage.turns_written()

    def _says_the_same(self, turn_id: RecordId, record: Record) -> bool:
        """Whether only what is around the content changed: its time, or what it used."""
        stored = self._db.execute("SELECT digest FROM turns WHERE id = ?", (turn_id,)).get
        return bool(stored == content_digest(record))

    def _date(self, turn_id: RecordId, ts: int | None) -> None:
        """Give the events and answers in a turn another time; recorded durations stay."""
        if self._db.execute("SELECT ts FROM turns WHERE id = ?", (turn_id,)).get == ts:
            return
        computed = self._db.execute(
            "SELECT id FROM events WHERE ?1 IN (turn_id, result_turn_id) AND turn_id"
            " <> result_turn_id AND (duration_ms IS NULL OR duration_ms = answered - ts)"
            f" AND NOT {AWAITS_PERSON}",
            (turn_id,),
        ).fetchall()
        self._db.execute("UPDATE events SET ts = ? WHERE turn_id = ?", (ts, turn_id))
        self._db.execute("UPDATE events SET answered = ? WHERE result_turn_id = ?", (ts, turn_id))
        self._db.executemany(
            "UPDATE events SET duration_ms = iif(answered >= ts, answered - ts, NULL) WHERE id = ?",
            computed,
        )

    def _is_joined(self, turn_id: RecordId, record: Record) -> bool:
        """Whether a call and its result are in two records, or another record is a copy."""
        return bool(record.results) or bool(
            self._db.execute(
                "SELECT EXISTS (SELECT 1 FROM events WHERE result_turn_id = ?1)"
                " OR EXISTS (SELECT 1 FROM events"
                " WHERE turn_id = ?1 AND result_turn_id IS NOT NULL)"
                " OR EXISTS (SELECT 1 FROM turns WHERE native_key = short_key(?2)"
                " AND native_id = ?2 AND digest = ?3 AND id <> ?1 AND retired = 0)",
                (turn_id, record.native_id, content_digest(record)),
            ).get
        )

    def _separate_from_copies(self, session: Session, turn_id: RecordId) -> None:
        """Its content no longer equals that of its copies."""
        self._copies.retire(turn_id, session.id, 0)
        self._db.execute("UPDATE turns SET copy_of = NULL WHERE id = ?", (turn_id,))

    def _forget_details(self, row: Row) -> None:
        for table in ("files", "commits", "edits"):
            self._db.execute(f"DELETE FROM {table} WHERE event_id = ?", (row.id,))
