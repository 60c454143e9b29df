"""Turns records into events: joins tool calls with their results, in any order."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import apsw

from sess_schema.edits import hunks_of, with_hunks, without_hunks
from sess_schema.ids import RecordId, SessionId, SourceId
from sess_schema.session import FACTS
from sessiond.engines.steps import PlacedRecord
from sessiond.sourcekit.base import LINK_PROMPT, Event, Record, Result, SessionSpec
from sessiond.writing.event_rows import ANSWER, ORPHAN, Calls, EventRows, Row, clean, row_of
from sessiond.writing.record_rows import Chunks
from sessiond.writing.sessions import Session, Sessions

# The facts that the call tells, not its result.
_OF_CALL = tuple(
    name for name in FACTS if name not in ("status", "output", "duration_ms", "images")
)


class EventWriter:
    """Collects the events of a slice, joins calls with results, writes all at once."""

    def __init__(self, db: apsw.Connection, sessions: Sessions, chunks: Chunks) -> None:
        self._db = db
        self._sessions = sessions
        self._chunks = chunks
        self.rows = EventRows(db)
        self._calls = Calls(self.rows)
        self._prompts: list[tuple[Session, Session, str]] = []
        # When a copy was written, by its session and the record that it is a copy of.
        self._shared: dict[tuple[SessionId, RecordId], int | None] = {}
        self._attachments: str | None = None
        self.reshaped: set[SessionId] = set()  # sessions that gained or lost events outside `add`

    def begin(
        self,
        spec: SessionSpec,
        records: list[PlacedRecord],
        main: Session,
        twins: Iterable[RecordId],
    ) -> None:
        """Look up the stored calls that this slice may complete, or copies of which it has."""
        self._attachments = spec.attachments
        self._prompts = []
        self._shared.clear()
        call_ids: set[str] = set()
        apart = False  # it has records of other sessions
        for placed in records:
            record = placed.record
            for event in record.events:
                if event.call_id:
                    call_ids.add(event.call_id)
            for result in record.results:
                call_ids.add(result.call_id)
            apart = apart or record.sidechain or record.session is not None
        self._calls.begin(call_ids, None if apart else main.id, twins)

    def add(self, session: Session, record_id: RecordId, record: Record) -> None:
        """Add the events of a new record, and count those that are new to the session."""
        for block, event in enumerate(record.events):
            if event.call_id and self._complete_orphan(session, record_id, block, record, event):
                continue
            self._add_event(session, record_id, block, record, event)
            session.count(event.type)
        for block, result in enumerate(record.results, len(record.events)):
            if self._answer(session, record_id, block, record, result):
                session.events += 1  # but nobody called anything

    def _add_event(
        self, session: Session, record_id: RecordId, block: int, record: Record, event: Event
    ) -> None:
        event_id = self.rows.id_of(record_id, record.events, block)
        self._keep(row_of(event_id, session.id, (record_id, block), record, event))

    def _keep(self, row: Row) -> None:
        self.rows.add(row)
        if row.call_id is not None:
            self._calls.add(row)

    def _complete_orphan(
        self, session: Session, record_id: RecordId, block: int, record: Record, event: Event
    ) -> bool:
        """Complete the event of a call whose result came first."""
        row = self._calls.orphan(event.call_id, session.id)
        if row is None:
            return False
        self.rows.load(row)
        self._calls.complete(row)
        for name in _OF_CALL:
            setattr(row, name, getattr(event, name))
        row.record_id, row.block, row.ts, row.files = record_id, block, record.ts, event.files
        row.edits = with_hunks(event.edits, hunks_of(self.rows.edits(row)))
        row.duration_ms = _duration(row.duration_ms, _own_time(record), row.answered)
        self.rows.replace(row)
        self._reshape(row)  # now it is a call
        return True

    def _answer(
        self, session: Session, record_id: RecordId, block: int, record: Record, result: Result
    ) -> bool:
        """Join a result with its call; True if it becomes a separate event instead.

        A call shared by forks takes the result of its own session, else of the oldest one,
        whatever is read first.
        """
        call = self._call_of(session, result)
        if call is not None and self._rank(call, session, 0) < self._rank_of_result(call):
            if call.result_record_id is not None:
                self._detach(call, ANSWER)
            self._join(call, session, record_id, record, result)
            return False
        event_id = self.rows.id_of_result(record_id, result.call_id)
        row = Row("tool_use", id=event_id, session_id=session.id, record_id=record_id, block=block)
        row.unjoined = ORPHAN if call is None else ANSWER
        if call is not None:
            row.tool, row.summary, row.kind = call.tool, call.summary, call.kind
        row.call_id, row.ts = result.call_id, record.ts
        self._keep(row)
        self._join(row, session, record_id, record, result)
        started = self._started(session.id, call) if call else None
        row.duration_ms = _duration(result.duration_ms, started, row.answered)
        return True

    @staticmethod
    def _rank(call: Row, session: Session, retired: int) -> tuple[bool, bool, int, bool, str, str]:
        return retired > 0, session.id != call.session_id, *session.age()

    def _rank_of_result(self, call: Row) -> tuple[bool, bool, int, bool, str, str]:
        if call.result_session is None:
            return True, True, 1 << 63, True, "", ""
        return self._rank(call, self._sessions.by_id(call.result_session), call.result_retired or 0)

    def _detach(self, call: Row, unjoined: str) -> None:
        """Detach the result from a call and make it a separate event."""
        self.rows.load(call)
        assert call.result_session is not None
        assert call.result_record_id is not None
        row = Row("tool_use", id=self.rows.new_id(), record_id=call.result_record_id)
        row.session_id = call.result_session
        row.unjoined = unjoined
        row.status, row.output = call.status, call.output
        row.call_id, row.overflow = call.call_id, call.overflow
        row.result_record_id, row.result_pointer = call.result_record_id, call.result_pointer
        row.retired = call.result_retired or 0
        row.result_session, row.result_retired = call.result_session, call.result_retired
        row.ts, row.answered = self._time_of(call.result_record_id), call.answered
        if unjoined == ANSWER:
            row.tool, row.summary, row.duration_ms = call.tool, call.summary, call.duration_ms
            row.kind = call.kind
        if hunks := hunks_of(self.rows.edits(call)):
            row.edits, call.edits = with_hunks((), hunks), without_hunks(self.rows.edits(call))
        self._keep(row)
        self._reshape(row)
        call.status, call.output = "pending", ""
        call.result_record_id = call.result_pointer = call.overflow = call.duration_ms = None
        call.answered = None
        call.result_session = call.result_retired = None
        self.rows.replace(call)

    def detach_lost(self, source_id: SourceId, generation: int) -> None:
        """Detach results from calls where a rewrite removed one of the two."""
        lost = (
            "SELECT id FROM records WHERE source_id = ?1 AND retired = ?2 AND session_id IN"
            " (SELECT session_id FROM session_sources WHERE source_id = ?1)"
        )
        self._calls.begin(())
        for row in self.rows.stored(
            f"e.result_record_id IN ({lost}) AND e.unjoined IS NULL AND c.retired = 0",
            source_id,
            generation,
        ):
            self._detach(row, ANSWER)
        for row in self.rows.stored(
            f"e.record_id IN ({lost}) AND r.retired = 0 AND e.record_id <> e.result_record_id",
            source_id,
            generation,
        ):
            self._detach(row, ORPHAN)
        self.flush()

    def rejoin(self, record: Record) -> None:
        """Choose results again after a record got another owner or a session a copy of it."""
        for call_id in {
            *(event.call_id for event in record.events if event.call_id),
            *(result.call_id for result in record.results),
        }:
            self._rejoin_calls(call_id)

    def rejoin_taken_back(self, record_ids: list[RecordId]) -> None:
        """Choose results again after a log took records back that forks may still have."""
        call_ids: list[Any] = self._db.execute(
            "SELECT DISTINCT call_id FROM events WHERE call_id IS NOT NULL AND id IN ("
            " SELECT e.id FROM json_each(?1) j JOIN records t ON t.id = j.value"
            " JOIN events e ON e.record_id = coalesce(t.copy_of, t.id)"
            " UNION SELECT e.id FROM json_each(?1) j"
            " JOIN events e ON e.result_record_id = j.value)",
            (json.dumps(record_ids),),
        ).fetchall()
        for (call_id,) in call_ids:
            self._calls.reload(call_id)
            self._rejoin_calls(call_id)
        self.flush()

    def _rejoin_calls(self, call_id: str) -> None:
        for call in self._calls.newest(call_id):
            if call.result_retired and self._is_superseded(call.result_record_id):
                self._detach(call, ANSWER)
            self._rejoin_call(call, self._calls.results(call_id))

    def _is_superseded(self, record_id: RecordId | None) -> bool:
        return bool(
            self._db.execute("SELECT superseded FROM records WHERE id = ?", (record_id,)).get
        )

    def _rejoin_call(self, call: Row, results: list[Row]) -> None:
        if not results:
            return
        best: Row | None = None
        rank = self._rank_of_result(call)
        for row in results:
            session = self._sessions.by_id(row.session_id)
            if session.id == call.session_id or self._shares(session, call):
                other = self._rank(call, session, 0)
                if other < rank:
                    best, rank = row, other
        if best is None:
            return
        if call.result_record_id is not None:
            self._detach(call, ANSWER)
        self.rows.load(call)
        self.rows.load(best)
        call.status, call.output = best.status, best.output
        call.images += best.images
        call.result_record_id, call.result_pointer = best.result_record_id, best.result_pointer
        call.result_session, call.result_retired = best.session_id, 0
        call.overflow = best.overflow
        started = self._started(best.session_id, call)
        call.duration_ms = _duration(best.duration_ms, started, best.answered)
        if hunks := hunks_of(self.rows.edits(best)):
            call.edits = with_hunks(self.rows.edits(call), hunks)
        call.answered = best.answered
        self.rows.replace(call)
        self._drop(best)

    def _drop(self, row: Row) -> None:
        self.rows.drop(row)
        self._calls.drop(row)
        self._reshape(row)

    def _reshape(self, row: Row) -> None:
        """Mark every session that shows the row's record: its number of events changed."""
        self.reshaped.add(row.session_id)
        self.reshaped |= {
            session for session, record_id in self._shared if record_id == row.record_id
        }
        self.reshaped |= {
            session
            for (session,) in self._db.execute(
                "SELECT session_id FROM records WHERE copy_of = ?", (row.record_id,)
            )
        }

    def _call_of(self, session: Session, result: Result) -> Row | None:
        """The call in this session, or the one shared with the session it was forked from.

        Some gateways reuse call ids in each response, so the newest open call is taken.
        """
        answered: Row | None = None
        others: list[Row] = []
        for row in self._calls.newest_first(result.call_id):
            if row.session_id != session.id:
                others.append(row)
            elif row.status == "pending":
                return row
            else:
                answered = answered or row
        if answered is not None:
            return answered
        shared = [row for row in others if self._shares(session, row)]
        return max(shared, key=lambda row: (row.status == "pending", row.id), default=None)

    def _shares(self, session: Session, row: Row) -> bool:
        return (session.id, row.record_id) in self._shared or (
            self._db.execute(
                "SELECT 1 FROM records WHERE copy_of = ? AND session_id = ?",
                (row.record_id, session.id),
            ).get
            is not None
        )

    def _join(
        self, row: Row, session: Session, record_id: RecordId, record: Record, result: Result
    ) -> None:
        self.rows.load(row)
        row.result_record_id, row.result_pointer = record_id, result.pointer
        row.result_session, row.result_retired = session.id, 0
        row.status, row.output = result.status, result.output
        row.images += result.images
        row.answered = _own_time(record)
        # A record with both has one time, which says nothing about how long it took.
        started = self._started(session.id, row) if row.record_id != record_id else None
        row.duration_ms = _duration(result.duration_ms, started, row.answered)
        if result.overflow and self._attachments:
            row.overflow = os.path.join(self._attachments, result.overflow)
            row.output = self._chunks.text_of(row.overflow) or row.output
        if result.hunks:
            row.edits = with_hunks(self.rows.edits(row), result.hunks)
        self.rows.replace(row)

    def change_owner(self, old: RecordId, new: RecordId, session_id: SessionId) -> None:
        """Apply a change of owner to the cached rows, so that they do not undo it."""
        for row in self._calls:
            if row.record_id == old:
                row.record_id, row.session_id = new, session_id
                row.call_retired = row.retired = 0
            if row.result_record_id == old:
                row.result_record_id, row.result_session = new, session_id
                row.result_retired = 0

    def replace_words(self, record_id: RecordId, record: Record) -> None:
        """Take the words of a copy that becomes the owner: its JSON may have another order."""
        self.flush()
        for row in self.rows.stored("e.record_id = ? AND e.unjoined IS NULL", record_id):
            event = record.events[row.block]
            cached = (one for one in self._calls.of(row.call_id) if one.id == row.id)
            kept = next(cached, row)
            self.rows.load(kept)
            if (clean(kept.text), clean(kept.input)) != (clean(event.text), clean(event.input)):
                kept.text, kept.input = event.text, event.input
                self.rows.replace(kept)
        self.flush()

    def take_time(
        self, old: tuple[RecordId, SessionId], new: tuple[RecordId, SessionId], ts: int | None
    ) -> None:
        """Give events the time of the record that took them over: copies may have new timestamps.

        `old` and `new` are the records with their sessions. Recorded durations stay.
        """
        before = self._db.execute("SELECT ts FROM records WHERE id = ?", (old[0],)).get
        if before == ts:
            return
        self._db.execute("UPDATE events SET ts = ? WHERE record_id = ?", (ts, new[0]))
        self._db.execute("UPDATE events SET answered = ? WHERE result_record_id = ?", (ts, new[0]))
        for row in self.rows.stored("e.result_record_id = ?", new[0]):
            call = row if row.unjoined is None else self._original(row)
            if call is None or call.record_id == new[0] or row.awaits_person():
                continue
            computed = _duration(None, self._started(old[1], call), before)
            if row.duration_ms in (None, computed):
                took = _duration(None, self._started(new[1], call), ts)
                self._db.execute("UPDATE events SET duration_ms = ? WHERE id = ?", (took, row.id))
        for row in [row for row in self._calls if row.stored]:
            if new[0] in (row.record_id, row.result_record_id):
                ((row.ts, row.answered, row.duration_ms),) = self._db.execute(
                    "SELECT ts, answered, duration_ms FROM events WHERE id = ?", (row.id,)
                )

    def _time_of(self, record_id: RecordId) -> int | None:
        ts: int | None = self._db.execute("SELECT ts FROM records WHERE id = ?", (record_id,)).get
        return ts

    def _original(self, answer: Row) -> Row | None:
        """The call that another result was joined with."""
        return self._calls.original(answer.call_id)

    def _started(self, session_id: SessionId, call: Row) -> int | None:
        """When a call began, by the session's own copy of it."""
        if session_id == call.session_id:
            return call.ts
        if (session_id, call.record_id) in self._shared:
            return self._shared[session_id, call.record_id]
        copies = self._db.execute(
            "SELECT ts FROM records WHERE copy_of = ? AND session_id = ? LIMIT 1",
            (call.record_id, session_id),
        )
        return next((ts for (ts,) in copies), call.ts)

    def mark(self, record_id: RecordId, *, gone: bool) -> None:
        """Note in cached rows that a stored record was taken back, or is in its file again."""
        for (call_id,) in self._db.execute(
            "SELECT call_id FROM events WHERE record_id = ?1 AND call_id IS NOT NULL UNION"
            " SELECT call_id FROM events WHERE result_record_id = ?1 AND call_id IS NOT NULL",
            (record_id,),
        ):
            for row in self._calls.of(call_id):
                if row.record_id == record_id:
                    row.call_retired = row.retired = int(gone)
                if row.result_record_id == record_id:
                    row.result_retired = int(gone)

    def note_copy(self, session: Session, record_id: RecordId, ts: int | None) -> None:
        """The session has a copy of a record that another session owns."""
        self._shared.setdefault((session.id, record_id), ts)

    def fill_overflow(self, path: str) -> None:
        """Fill in an overflowed output whose file arrived after the line that mentions it."""
        for row in self.rows.stored("e.overflow = ?", path):
            self.rows.load(row)
            row.output = self._chunks.text_of(path) or row.output
            self.rows.replace(row)
        self.flush()

    def await_prompt(self, parent: Session, child: Session, record: Record) -> None:
        """Find the call later by the first prompt: records in the parent's file do not name it."""
        text = next((event.text for event in record.events if event.type == "user"), "")
        if text and child.link_rank <= LINK_PROMPT:
            self._prompts.append((parent, child, text))

    def _link_prompts(self) -> None:
        for parent, child, text in self._prompts:
            for (call_id,) in self._db.execute(
                "SELECT call_id FROM events e JOIN event_texts t ON t.id = e.id"
                " WHERE session_id = ? AND kind = 'agent' AND instr(input, ?)"
                " ORDER BY e.id DESC LIMIT 1",
                (parent.id, clean(text)),
            ):
                child.call_id, child.link_rank = call_id, LINK_PROMPT
        self._prompts = []

    def flush(self) -> None:
        """Write the collected events; full text is indexed at the end of the transaction."""
        self.rows.flush()
        self._link_prompts()


def _own_time(record: Record) -> int | None:
    """Of a record that has one: a borrowed time measures nothing."""
    return record.ts if record.ts_from is None else None


def _duration(recorded: int | None, started: int | None, ended: int | None) -> int | None:
    if recorded is not None or started is None or ended is None or ended < started:
        return recorded
    return ended - started
