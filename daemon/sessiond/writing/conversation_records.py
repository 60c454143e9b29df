"""Records of a conversation in a document or database: archived as lines, changed in place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from sess_schema import archive
from sess_schema.ids import NO_SOURCE, RecordId
from sessiond.engines.steps import PlacedRecord, Problem, content_digest
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Conversation, Item, Record
from sessiond.writing.copies import Copies
from sessiond.writing.event_rows import AWAITS_PERSON, EventRows, Row, content_of, row_of
from sessiond.writing.events import EventWriter
from sessiond.writing.record_rows import Chunks
from sessiond.writing.records import RecordWriter
from sessiond.writing.sessions import Session
from sessiond.writing.usage import UsageWriter

PLACE_BITS = 32
PREVIEW = 100
HEADER, SESSION = "header", "session"  # where the time of a record without one comes from


@dataclass(slots=True, eq=False)
class Lines:
    """Archives records as lines, and writes their rows.

    The offset of a line is its number in the conversation, shifted to leave room for any length,
    so the archive and everything shown follow the order of the conversation.
    """

    db: apsw.Connection
    records: RecordWriter
    chunks: Chunks
    copies: Copies
    events: EventWriter
    usage: UsageWriter

    @staticmethod
    def date_record(record: Record, key: str, change: Conversation) -> None:
        """A record without a time gets that of its header, else of the conversation."""
        if record.ts is None:
            record.ts, record.ts_from = _time(key, change)

    def add(
        self, part: Tracked, change: Conversation, new: list[tuple[Item, Record]]
    ) -> list[tuple[Item, RecordId | None]]:
        if not new:
            return []
        lines = {key: number for number, key in enumerate(change.order, 1)}
        new.sort(key=lambda pair: lines[pair[0].key])
        records = []
        for item, record in new:
            line, digest = lines[item.key], content_digest(record)
            records.append(PlacedRecord(_place(line), item.size, line, record, digest))
        self.records.write(part, change.spec, records)
        self.db.executemany(
            "INSERT INTO chunks (source_id, retired, offset, length, data) VALUES (?, 0, ?, ?, ?)",
            [
                (part.id, placed.offset, item.size + 1, archive.pack(item.line() + b"\n"))
                for placed, (item, _) in zip(records, new, strict=True)
            ],
        )
        for placed, (item, record) in zip(records, new, strict=True):
            self._warn(part, (placed.line, placed.offset), item, record)
        return [(item, placed.id) for placed, (item, _) in zip(records, new, strict=True)]

    def rewrite(self, part: Tracked, record_id: RecordId, item: Item) -> None:
        """Update the line of a record that changed in place."""
        record = item.record
        assert record is not None
        ((line, offset),) = self.db.execute(
            "SELECT line, offset FROM records WHERE id = ?", (record_id,)
        )
        self.db.execute(
            "UPDATE records SET length = ?, kind = ?, role = ?, parent_id = ?, ts = ?, ts_from = ?,"
            " digest = ? WHERE id = ?",
            (
                item.size, record.kind, record.role, record.parent_id, record.ts, record.ts_from,
                content_digest(record), record_id,
            ),
        )  # fmt: skip
        self.db.execute(
            "UPDATE chunks SET length = ?, data = ?"
            " WHERE source_id = ? AND retired = 0 AND offset = ?",
            (item.size + 1, archive.pack(item.line() + b"\n"), part.id, offset),
        )
        here = "source_id = ? AND offset = ? AND retired = 0"
        self.db.execute(
            f"UPDATE warnings SET times = times - 1 WHERE times > 1 AND {here}", (part.id, offset)
        )
        if not self.db.changes():
            self.db.execute(f"DELETE FROM warnings WHERE {here}", (part.id, offset))
        self._warn(part, (line, offset), item, record)

    def _warn(self, part: Tracked, at: tuple[int, int], item: Item, record: Record) -> None:
        if not record.warnings:
            return
        preview = item.line()[: PREVIEW * 4].decode("utf-8", "replace")[:PREVIEW]
        problems = [Problem(*at, warning, preview) for warning in record.warnings]
        self.chunks.add_problems(part, problems)

    def retire(self, part: Tracked, session: Session, record_ids: Sequence[RecordId]) -> None:
        """Keep records that left the conversation in the index, under a generation number."""
        if not record_ids:
            return
        part.generation += 1
        for record_id in record_ids:
            self.copies.retire(record_id, session.id, part.generation)
            offset = self.db.execute("SELECT offset FROM records WHERE id = ?", (record_id,)).get
            for table in ("chunks", "warnings"):
                self.db.execute(
                    f"UPDATE {table} SET retired = ?"
                    " WHERE source_id = ? AND retired = 0 AND offset = ?",
                    (part.generation, part.id, offset),
                )
            self.db.execute(
                "UPDATE records SET retired = ? WHERE id = ?", (part.generation, record_id)
            )
        self.events.detach_lost(part.id or NO_SOURCE, part.generation)

    def discard(self, part: Tracked, session: Session, record_ids: Sequence[RecordId]) -> None:
        """Remove records that are added again in this transaction, read by a newer edition."""
        if not record_ids:
            return
        self.retire(part, session, record_ids)
        self.copies.purge(f"VALUES {','.join(f'({record_id})' for record_id in record_ids)}")
        for table in ("chunks", "warnings"):
            self.db.execute(
                f"DELETE FROM {table} WHERE source_id = ? AND retired = ?",
                (part.id, part.generation),
            )
        part.generation -= 1

    def arrange(self, whole: Tracked, part: Tracked, change: Conversation) -> None:
        """Give every stored line its current place and time in the conversation."""
        places, times = [], []
        for key, line, record_id, offset, ts, ts_from in self.db.execute(
            "SELECT k.value, k.key + 1, t.id, t.offset, t.ts, t.ts_from FROM json_each(?) k"
            " CROSS JOIN database_rows r ON r.source_id = ? AND r.key = k.value"
            " JOIN records t ON t.id = r.record_id AND t.source_id = ? AND t.retired = 0",
            (json.dumps(change.order), whole.id, part.id),
        ):
            if offset != _place(line):
                places.append((line, offset, record_id))
            if (ts is None or ts_from is not None) and (ts, ts_from) != _time(key, change):
                times.append((*_time(key, change), record_id))
        self._move(part, places)
        for ts, ts_from, record_id in times:
            self.db.execute(
                "UPDATE records SET ts = ?, ts_from = ? WHERE id = ?", (ts, ts_from, record_id)
            )
            self.db.execute("UPDATE events SET ts = ? WHERE record_id = ?", (ts, record_id))
            self.usage.redate(record_id)

    def _move(self, part: Tracked, places: list[tuple[int, int, int]]) -> None:
        if not places:
            return
        # Find all before moving any: the places overlap.
        rows = [
            (table, row_id, line)
            for line, offset, _ in places
            for table in ("chunks", "warnings")
            for (row_id,) in self.db.execute(
                f"SELECT id FROM {table} WHERE source_id = ? AND retired = 0 AND offset = ?",
                (part.id, offset),
            )
        ]
        # First out of the way: no two chunks may have the same place, not even for a moment.
        self.db.executemany(
            "UPDATE chunks SET offset = -id WHERE id = ?",
            [(row_id,) for table, row_id, _ in rows if table == "chunks"],
        )
        for table, row_id, line in rows:
            self.db.execute(f"UPDATE {table} SET offset = ? WHERE id = ?", (_place(line), row_id))
        self.db.executemany(
            "UPDATE records SET offset = ?, line = ? WHERE id = ?",
            [(_place(line), line, record_id) for line, _, record_id in places],
        )


def _time(key: str, change: Conversation) -> tuple[int | None, str | None]:
    if key in change.times:
        return change.times[key], HEADER
    if change.created_at is not None:
        return change.created_at, SESSION
    return None, None


def _place(line: int) -> int:
    return line << PLACE_BITS


@dataclass(slots=True, eq=False)
class Revision:
    """Sets the events of a stored record to its current content."""

    db: apsw.Connection
    rows: EventRows
    copies: Copies
    usage: UsageWriter

    def apply(self, session: Session, record_id: RecordId, record: Record, *, stale: bool) -> bool:
        """False if other records are joined with it: it must become a new one.

        `stale`: an older edition of the reader read it.
        """
        if self._is_joined(record_id, record):
            if stale or not self._says_the_same(record_id, record):
                return False
            self._date(record_id, record.ts)
            self._spend(session, record_id, record)
            return True
        self._separate_from_copies(session, record_id)
        rows = self.rows
        old = {row.block: row for row in rows.stored("e.record_id = ?", record_id)}
        hidden = self.db.execute("SELECT retired FROM records WHERE id = ?", (record_id,)).get
        for block, event in enumerate(record.events):
            row = old.pop(block, None)
            event_id = row.id if row else rows.new_id()
            new = row_of(event_id, session.id, (record_id, block), record, event)
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
        self._spend(session, record_id, record)
        return True

    def _spend(self, session: Session, record_id: RecordId, record: Record) -> None:
        if record.model and record.model not in session.models:
            session.models.append(record.model)
        if record.usage is not None:
            self.usage.add(session, record_id, record, record.usage)
            self.usage.records_written()

    def _says_the_same(self, record_id: RecordId, record: Record) -> bool:
        """Whether only what is around the content changed: its time, or what it used."""
        stored = self.db.execute("SELECT digest FROM records WHERE id = ?", (record_id,)).get
        return bool(stored == content_digest(record))

    def _date(self, record_id: RecordId, ts: int | None) -> None:
        """Give the events and answers in a record another time; recorded durations stay."""
        if self.db.execute("SELECT ts FROM records WHERE id = ?", (record_id,)).get == ts:
            return
        computed = self.db.execute(
            "SELECT id FROM events WHERE ?1 IN (record_id, result_record_id) AND record_id"
            " <> result_record_id AND (duration_ms IS NULL OR duration_ms = answered - ts)"
            f" AND NOT {AWAITS_PERSON}",
            (record_id,),
        ).fetchall()
        self.db.execute("UPDATE events SET ts = ? WHERE record_id = ?", (ts, record_id))
        self.db.execute(
            "UPDATE events SET answered = ? WHERE result_record_id = ?", (ts, record_id)
        )
        self.db.executemany(
            "UPDATE events SET duration_ms = iif(answered >= ts, answered - ts, NULL) WHERE id = ?",
            computed,
        )

    def _is_joined(self, record_id: RecordId, record: Record) -> bool:
        """Whether a call and its result are in two records, or another record is a copy."""
        return bool(record.results) or bool(
            self.db.execute(
                "SELECT EXISTS (SELECT 1 FROM events WHERE result_record_id = ?1)"
                " OR EXISTS (SELECT 1 FROM events"
                " WHERE record_id = ?1 AND result_record_id IS NOT NULL)"
                " OR EXISTS (SELECT 1 FROM records WHERE native_key = short_key(?2)"
                " AND native_id = ?2 AND digest = ?3 AND id <> ?1 AND retired = 0)",
                (record_id, record.native_id, content_digest(record)),
            ).get
        )

    def _separate_from_copies(self, session: Session, record_id: RecordId) -> None:
        """Its content no longer equals that of its copies."""
        self.copies.retire(record_id, session.id, 0)
        self.db.execute("UPDATE records SET copy_of = NULL WHERE id = ?", (record_id,))

    def _forget_details(self, row: Row) -> None:
        for table in ("files", "commits", "edits"):
            self.db.execute(f"DELETE FROM {table} WHERE event_id = ?", (row.id,))
