"""Writes records into `turns`: their sessions, their copies, and the records they take back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sess_schema.short_keys import short_key
from sessiond.engines.slices import Turn
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Record, SessionSpec, Usage
from sessiond.writing import mirrors, supersede
from sessiond.writing.copies import Alike, Twin
from sessiond.writing.sessions import Session

if TYPE_CHECKING:
    from sessiond.writing.transaction import Transaction

_INSERT = (
    "INSERT INTO turns (id, source_id, session_id, offset, length, line, kind, role,"
    " native_id, native_key, parent_id, ts, ts_from, digest, forked, copy_of)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class TurnWriter:
    """Writes the records of one source, slice by slice."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._db = transaction.db
        self._next_id: int | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._chains: dict[str, Session] = {}  # by sidechain record of the slice
        self._outranked: dict[int, bool] = {}  # by session: a better source has it
        self._outranks: set[int] = set()  # sessions that only worse sources had until now
        self._ids: dict[tuple[int, int], int] = {}  # of removed turns, by source and offset

    def write(self, source: Tracked, spec: SessionSpec, turns: list[Turn]) -> None:
        transaction = self._transaction
        main = self._main(source, spec)
        known = transaction.copies.begin(source, turns)
        twins = (twin.id for alike in known.values() for twin in alike.twins)
        transaction.events.begin(spec, turns, main, twins)
        self._rows, self._chains, self._outranked, self._outranks = [], {}, {}, set()
        for turn in turns:  # most records are new lines of the main session: keep that path short
            record = turn.record
            session = main
            if record.sidechain or record.session:
                session = self._session_of(source, spec, main, record)
            self._learn(source, spec, session, turn)
            for operation in record.retires:
                supersede.apply(transaction, source, session, turn, operation)
            key = record.native_id, turn.digest
            alike = known.get(key)
            twin: Twin | None = None
            if alike is not None:
                if alike.returning:
                    self._return(turn, alike.returning.popleft())
                    continue
                while alike.twins and self._is_past(source, session, alike.twins[0]):
                    alike.twins.popleft()
                twin = alike.twins[0] if alike.twins else None
            elif source.part_of is None:
                twin = transaction.copies.replayed(session, turn)
                if twin is not None and self._is_past(source, session, twin):
                    twin = None
            self._add(source, session, turn, twin)
            if alike is None:
                alike = known[key] = Alike(deque([twin] if twin else ()))
            alike.twins.append(self._twin(source, session, turn, twin))
        self.flush()
        for session_id, outranked in self._outranked.items():
            if outranked or session_id in self._outranks:
                mirrors.retire(transaction, session_id)
        transaction.titles.arrived([t.record.native_id for t in turns if t.record.native_id], main)

    def _main(self, source: Tracked, spec: SessionSpec) -> Session:
        sessions = self._transaction.sessions
        if spec.fallback:
            main = sessions.get(source.agent, mirrors.bare(spec))
            if mirrors.is_known_better(self._db, main.id, spec.fallback):
                return main
        return sessions.get(source.agent, spec)

    def flush(self) -> None:
        """Write the collected rows into the index."""
        self._db.executemany(_INSERT, self._rows)
        self._rows = []
        self._transaction.usage.turns_written()
        self._transaction.copies.written()
        self._transaction.events.flush()

    def _session_of(
        self, source: Tracked, spec: SessionSpec, main: Session, record: Record
    ) -> Session:
        if record.sidechain and spec.kind == "main":
            return self._sidechain(main, record)
        if record.session and record.session != spec.native_id:
            return self._transaction.sessions.get(source.agent, SessionSpec(record.session))
        return main

    def _learn(self, source: Tracked, spec: SessionSpec, session: Session, turn: Turn) -> None:
        """Take what a record gives about its session as a whole."""
        if session.id not in self._outranked:
            new = mirrors.enroll(self._transaction, source.id, session.id, spec.fallback)
            outranked = mirrors.is_outranked(self._db, source.id, session.id, spec.fallback)
            self._outranked[session.id] = outranked
            if new and not outranked and mirrors.are_worse(self._db, session.id):
                self._outranks.add(session.id)
                self._transaction.sessions.unlearn(session)  # what worse sources gave
                self._transaction.sessions.get(source.agent, spec)
        if not self._outranked[session.id]:
            session.learn(turn.record)
            for title in turn.record.titles:
                self._transaction.titles.give(session, title, turn.offset)
        for link in turn.record.links:
            self._transaction.sessions.link(source.agent, spec, session, link)

    def _add(self, source: Tracked, session: Session, turn: Turn, twin: Twin | None) -> None:
        record = turn.record
        turn.id = self._ids.pop((source.id or 0, turn.offset), 0) if self._ids else 0
        turn.id = turn.id or self.new_id()
        turn.copy_of = self._transaction.copies.owner_of(session, turn, turn.id, twin)
        self._rows.append(
            (
                turn.id,
                source.id,
                session.id,
                turn.offset,
                turn.length,
                turn.line,
                record.kind,
                record.role,
                record.native_id,
                short_key(record.native_id) if record.native_id is not None else None,
                record.parent_id,
                record.ts,
                record.ts_from,
                turn.digest,
                int(record.forked),
                turn.copy_of,
            )
        )
        if twin is not None:
            self._transaction.counters.changed(session.id)
            self._transaction.events.share(session, turn.copy_of or turn.id, record.ts)
            self._transaction.events.rejoin(record)
        else:
            self._transaction.events.add(session, turn.id, record)
        if record.usage is not None:
            usage = self._transaction.usage
            self._spend(usage.hold if twin else usage.add, session, turn.id, record, record.usage)

    def new_id(self) -> int:
        if self._next_id is None:
            self._next_id = self._db.execute("SELECT coalesce(max(id), 0) FROM turns").get
        self._next_id += 1
        return self._next_id

    def reuse(self, ids: dict[tuple[int, int], int]) -> None:
        """Give records that are added again the ids under which they were removed."""
        self._ids = ids

    def _twin(self, source: Tracked, session: Session, turn: Turn, original: Twin | None) -> Twin:
        twin = Twin(
            turn.id, session.id, source.id or 0, 0, 0, int(turn.record.forked), turn.copy_of
        )
        self._transaction.copies.add(session, twin, turn, original)
        return twin

    def _spend(
        self,
        take: Callable[[Session, int, Record, Usage], None],
        session: Session,
        turn_id: int,
        record: Record,
        spent: Usage,
    ) -> None:
        if record.usage_agent:
            session = self._transaction.sessions.sidechain(session, record.usage_agent)
        for usage in (spent, *record.advice):
            take(session, turn_id, record, usage)

    def _sidechain(self, main: Session, record: Record) -> Session:
        """The subagent of a sidechain record: that of its parent record, or a new one."""
        if record.subagent:
            return self._transaction.sessions.sidechain(main, record.subagent)
        parent = self._chains.get(record.parent_id or "")
        if parent is None and record.parent_id:
            for (above,) in self._db.execute(
                "SELECT t.session_id FROM turns t JOIN sessions s ON s.id = t.session_id"
                " WHERE t.native_key = ? AND t.native_id = ? AND s.parent_id = ? LIMIT 1",
                (short_key(record.parent_id), record.parent_id, main.id),
            ):
                parent = self._transaction.sessions.by_id(above)
        session = parent or self._transaction.sessions.sidechain(
            main, f"sidechain-{record.native_id}"
        )
        if parent is None:
            self._transaction.events.await_prompt(main, session, record)
        if record.native_id:
            self._chains[record.native_id] = session
        return session

    def _is_past(self, source: Tracked, session: Session, twin: Twin) -> bool:
        """Whether a twin in the same session has left or is about to be hidden by this source."""
        return twin.session_id == session.id and (
            twin.left or (session.id in self._outranks and twin.source_id != source.id)
        )

    def _return(self, turn: Turn, twin: Twin) -> None:
        """Restore the row and events of a record that a rewritten file still contains."""
        self._db.execute(
            "UPDATE turns SET retired = 0, superseded = 0, offset = ?, length = ?, line = ?"
            " WHERE id = ?",
            (turn.offset, turn.length, turn.line, twin.id),
        )
        self._db.execute("UPDATE events SET retired = 0 WHERE turn_id = ?", (twin.id,))
        turn.id = twin.id
        self._transaction.copies.returned(twin)
        self._transaction.events.returned(twin.id)
