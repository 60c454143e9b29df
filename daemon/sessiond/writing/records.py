"""Writes records into `records`: their sessions, their copies, and the records they take back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import apsw

from sess_schema.ids import RecordId, SessionId
from sess_schema.short_keys import short_key
from sessiond.engines.slices import PlacedRecord
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Record, SessionSpec, Usage
from sessiond.writing.copies import Alike, Copies
from sessiond.writing.events import EventWriter
from sessiond.writing.hiding import Mirrors, Superseding, bare
from sessiond.writing.record_rows import RecordRows, Twin
from sessiond.writing.session_facts import SessionFacts
from sessiond.writing.sessions import Session, Sessions
from sessiond.writing.usage import UsageWriter


class RecordWriter:
    """Writes the records of one source, slice by slice."""

    def __init__(
        self,
        db: apsw.Connection,
        rows: RecordRows,
        *,
        sessions: Sessions,
        copies: Copies,
        mirrors: Mirrors,
        superseding: Superseding,
        events: EventWriter,
        usage: UsageWriter,
        facts: SessionFacts,
    ) -> None:
        self._db = db
        self._rows = rows
        self._sessions = sessions
        self._copies = copies
        self._mirrors = mirrors
        self._events = events
        self._usage = usage
        self._facts = facts
        self._superseding = superseding
        self._chains: dict[str, Session] = {}  # by sidechain record of the slice
        self._outranked: dict[SessionId, bool] = {}  # by session: a better source has it
        self._outranks: set[SessionId] = set()  # sessions that only worse sources had until now

    def write(self, source: Tracked, spec: SessionSpec, records: list[PlacedRecord]) -> None:
        main = self._main(source, spec)
        known = self._copies.begin(source, records)
        twins = (twin.id for alike in known.values() for twin in alike.twins)
        self._events.begin(spec, records, main, twins)
        self._chains, self._outranked, self._outranks = {}, {}, set()
        for placed in records:  # most are new lines of the main session: keep that path short
            record = placed.record
            session = main
            if record.sidechain or record.session:
                session = self._session_of(source, spec, main, record)
            self._learn(source, spec, session, placed)
            for operation in record.retires:
                self._superseding.apply(source, session, placed, operation)
            key = record.native_id, placed.digest
            alike = known.get(key)
            twin: Twin | None = None
            if alike is not None:
                if alike.returning:
                    self._return(placed, alike.returning.popleft())
                    continue
                while alike.twins and self._is_past(source, session, alike.twins[0]):
                    alike.twins.popleft()
                twin = alike.twins[0] if alike.twins else None
            elif source.part_of is None:
                twin = self._copies.replayed(session, placed)
                if twin is not None and self._is_past(source, session, twin):
                    twin = None
            added = self._add(source, session, placed, twin)
            if alike is None:
                alike = known[key] = Alike(deque([twin] if twin else ()))
            alike.twins.append(added)
        self._rows.flush()
        for session_id, outranked in self._outranked.items():
            if outranked or session_id in self._outranks:
                self._mirrors.retire(session_id)
        self._facts.records_arrived(
            [t.record.native_id for t in records if t.record.native_id], main
        )

    def _main(self, source: Tracked, spec: SessionSpec) -> Session:
        sessions = self._sessions
        if spec.fallback:
            main = sessions.get(source.agent, bare(spec))
            if self._mirrors.is_known_better(main.id, spec.fallback):
                return main
        return sessions.get(source.agent, spec)

    def _session_of(
        self, source: Tracked, spec: SessionSpec, main: Session, record: Record
    ) -> Session:
        if record.sidechain and spec.kind == "main":
            return self._sidechain(main, record)
        if record.session and record.session != spec.native_id:
            return self._sessions.get(source.agent, SessionSpec(record.session))
        return main

    def _learn(
        self, source: Tracked, spec: SessionSpec, session: Session, placed: PlacedRecord
    ) -> None:
        """Take what a record gives about its session as a whole."""
        if session.id not in self._outranked:
            new = self._mirrors.enroll(source.id, session.id, spec.fallback)
            outranked = self._mirrors.is_outranked(source.id, session.id, spec.fallback)
            self._outranked[session.id] = outranked
            if new and not outranked and self._mirrors.are_worse(session.id):
                self._outranks.add(session.id)
                self._sessions.unlearn(session)  # what worse sources gave
                self._sessions.get(source.agent, spec)
        if not self._outranked[session.id]:
            session.learn(placed.record)
            for title in placed.record.titles:
                self._facts.entitle(session, title, placed.offset)
        for link in placed.record.links:
            self._sessions.link(source.agent, spec, session, link)

    def _add(
        self, source: Tracked, session: Session, placed: PlacedRecord, twin: Twin | None
    ) -> Twin:
        record = placed.record
        placed.id = self._rows.id_at(source, placed.offset)
        placed.copy_of = self._copies.owner_of(session, placed, placed.id, twin)
        added = self._rows.add(source, session.id, placed)
        if twin is not None:
            self._facts.count_again(session.id)
            self._events.note_copy(session, placed.copy_of or placed.id, record.ts)
            self._events.rejoin(record)
        else:
            self._events.add(session, placed.id, record)
        if record.usage is not None:
            take = self._usage.note_copy if twin else self._usage.add
            self._spend(take, session, placed.id, record, record.usage)
        self._copies.add(session, added, placed, twin)
        return added

    def _spend(
        self,
        take: Callable[[Session, RecordId, Record, Usage], None],
        session: Session,
        record_id: RecordId,
        record: Record,
        spent: Usage,
    ) -> None:
        if record.usage_agent:
            session = self._sessions.sidechain(session, record.usage_agent)
        for usage in (spent, *record.advice):
            take(session, record_id, record, usage)

    def _sidechain(self, main: Session, record: Record) -> Session:
        """The subagent of a sidechain record: that of its parent record, or a new one."""
        if record.subagent:
            return self._sessions.sidechain(main, record.subagent)
        parent = self._chains.get(record.parent_id or "")
        if parent is None and record.parent_id:
            for (above,) in self._db.execute(
                "SELECT t.session_id FROM records t JOIN sessions s ON s.id = t.session_id"
                " WHERE t.native_key = ? AND t.native_id = ? AND s.parent_id = ? LIMIT 1",
                (short_key(record.parent_id), record.parent_id, main.id),
            ):
                parent = self._sessions.by_id(above)
        session = parent or self._sessions.sidechain(main, f"sidechain-{record.native_id}")
        if parent is None:
            self._events.await_prompt(main, session, record)
        if record.native_id:
            self._chains[record.native_id] = session
        return session

    def _is_past(self, source: Tracked, session: Session, twin: Twin) -> bool:
        """Whether a twin in the same session has left or is about to be hidden by this source."""
        return twin.session_id == session.id and (
            twin.is_gone or (session.id in self._outranks and twin.source_id != source.id)
        )

    def _return(self, placed: PlacedRecord, twin: Twin) -> None:
        """Restore the row and events of a record that a rewritten file still contains."""
        self._db.execute(
            "UPDATE records SET retired = 0, superseded = 0, offset = ?, length = ?, line = ?"
            " WHERE id = ?",
            (placed.offset, placed.length, placed.line, twin.id),
        )
        self._db.execute("UPDATE events SET retired = 0 WHERE record_id = ?", (twin.id,))
        placed.id = twin.id
        self._copies.mark_back(twin)
        self._events.mark(twin.id, gone=False)
