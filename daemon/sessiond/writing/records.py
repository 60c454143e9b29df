"""Writes records into `records`: their sessions, their copies, and what hides them.

A record is hidden when a later one replaces it or takes it back, when a better source has it, or
when it is gone from its file.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import apsw

from sess_schema.ids import NO_SOURCE, RecordId, SessionId, SourceId, short_key
from sessiond.engines.steps import PlacedRecord
from sessiond.reading.tracked import Progress, Tracked
from sessiond.sourcekit.base import Record, Retire, SessionSpec, Usage
from sessiond.writing.copies import Alike, Copies
from sessiond.writing.events import EventWriter
from sessiond.writing.record_rows import RecordRows, Twin
from sessiond.writing.sessions import Session, SessionFacts, Sessions
from sessiond.writing.usage import UsageWriter


@dataclass(slots=True, eq=False)
class RecordWriter:
    """Writes the records of one source, slice by slice."""

    db: apsw.Connection
    rows: RecordRows
    sessions: Sessions
    copies: Copies
    mirrors: Mirrors
    superseding: Superseding
    events: EventWriter
    usage: UsageWriter
    facts: SessionFacts
    # Of the slice: sessions by sidechain record, and whether a better source has a session.
    _chains: dict[str, Session] = field(init=False, default_factory=dict)
    _outranked: dict[SessionId, bool] = field(init=False, default_factory=dict)
    # Sessions that only worse sources had until now.
    _outranks: set[SessionId] = field(init=False, default_factory=set)

    def write(self, source: Tracked, spec: SessionSpec, records: list[PlacedRecord]) -> None:
        main = self._main(source, spec)
        known = self.copies.begin(source, records)
        twins = (twin.id for alike in known.values() for twin in alike.twins)
        self.events.begin(spec, records, main, twins)
        self._chains, self._outranked, self._outranks = {}, {}, set()
        for placed in records:  # most are new lines of the main session: keep that path short
            record = placed.record
            session = main
            if record.sidechain or record.session:
                session = self._session_of(source, spec, main, record)
            self._learn(source, spec, session, placed)
            for operation in record.retires:
                self.superseding.apply(source, session, placed, operation)
            key = record.native_id, placed.digest
            alike = known.get(key)
            twin: Twin | None = None
            if alike is not None:
                if alike.returning:
                    self._return(session, placed, alike.returning.popleft())
                    continue
                while alike.twins and self._is_past(source, session, alike.twins[0]):
                    alike.twins.popleft()
                twin = alike.twins[0] if alike.twins else None
            elif source.part_of is None:
                twin = self.copies.replayed(session, placed)
                if twin is not None and self._is_past(source, session, twin):
                    twin = None
            added = self._add(source, session, placed, twin)
            if alike is None:
                alike = known[key] = Alike(deque([twin] if twin else ()))
            alike.twins.append(added)
        self.rows.flush()
        for session_id, outranked in self._outranked.items():
            if outranked or session_id in self._outranks:
                self.mirrors.retire(session_id)
        self.facts.records_arrived(
            [t.record.native_id for t in records if t.record.native_id], main
        )

    def _main(self, source: Tracked, spec: SessionSpec) -> Session:
        sessions = self.sessions
        if spec.fallback:
            main = sessions.get(source.agent, bare(spec))
            if self.mirrors.is_known_better(main.id, spec.fallback):
                return main
        return sessions.get(source.agent, spec)

    def _session_of(
        self, source: Tracked, spec: SessionSpec, main: Session, record: Record
    ) -> Session:
        if record.sidechain and spec.kind == "main":
            return self._sidechain(main, record)
        if record.session and record.session != spec.native_id:
            return self.sessions.get(source.agent, SessionSpec(record.session))
        return main

    def _learn(
        self, source: Tracked, spec: SessionSpec, session: Session, placed: PlacedRecord
    ) -> None:
        """Take what a record gives about its session as a whole."""
        if session.id not in self._outranked:
            new = self.mirrors.enroll(source.id, session.id, spec.fallback)
            outranked = self.mirrors.is_outranked(source.id, session.id, spec.fallback)
            self._outranked[session.id] = outranked
            if new and not outranked and self.mirrors.are_worse(session.id):
                self._outranks.add(session.id)
                self.sessions.unlearn(session)  # what worse sources gave
                self.sessions.get(source.agent, spec)
        if not self._outranked[session.id]:
            session.learn(placed.record)
            for title in placed.record.titles:
                self.facts.entitle(session, title, placed.offset)
        for link in placed.record.links:
            self.sessions.link(source.agent, spec, session, link)

    def _add(
        self, source: Tracked, session: Session, placed: PlacedRecord, twin: Twin | None
    ) -> Twin:
        record = placed.record
        placed.id = self.rows.id_at(source, placed.offset)
        placed.copy_of = self.copies.owner_of(session, placed, placed.id, twin)
        added = self.rows.add(source, session.id, placed)
        if twin is not None:
            self.facts.count_again(session.id)
            self.events.note_copy(session, placed.copy_of or placed.id, record.ts)
            self.events.rejoin(record)
        else:
            self.events.add(session, placed.id, record)
        self._spend(self.usage.note_copy if twin else self.usage.add, session, placed)
        self.copies.add(session, added, placed, twin)
        return added

    def _spend(
        self,
        take: Callable[[Session, RecordId, Record, Usage], None],
        session: Session,
        placed: PlacedRecord,
    ) -> None:
        record = placed.record
        if record.usage is None:
            return
        if record.usage_agent:
            session = self.sessions.sidechain(session, record.usage_agent)
        for usage in (record.usage, *record.advice):
            take(session, placed.id, record, usage)

    def _sidechain(self, main: Session, record: Record) -> Session:
        """The subagent of a sidechain record: that of its parent record, or a new one."""
        if record.subagent:
            return self.sessions.sidechain(main, record.subagent)
        parent = self._chains.get(record.parent_id or "")
        if parent is None and record.parent_id:
            for (above,) in self.db.execute(
                "SELECT t.session_id FROM records t JOIN sessions s ON s.id = t.session_id"
                " WHERE t.native_key = ? AND t.native_id = ? AND s.parent_id = ? LIMIT 1",
                (short_key(record.parent_id), record.parent_id, main.id),
            ):
                parent = self.sessions.by_id(above)
        session = parent or self.sessions.sidechain(main, f"sidechain-{record.native_id}")
        if parent is None:
            self.events.await_prompt(main, session, record)
        if record.native_id:
            self._chains[record.native_id] = session
        return session

    def _is_past(self, source: Tracked, session: Session, twin: Twin) -> bool:
        """Whether a twin in the same session has left or is about to be hidden by this source."""
        return twin.session_id == session.id and (
            twin.is_gone or (session.id in self._outranks and twin.source_id != source.id)
        )

    def _return(self, session: Session, placed: PlacedRecord, twin: Twin) -> None:
        """Restore the row and events of a record that a rewritten file still contains."""
        self.db.execute(
            "UPDATE records SET retired = 0, superseded = 0, offset = ?, length = ?, line = ?,"
            " parent_id = ? WHERE id = ?",
            (placed.offset, placed.length, placed.line, placed.record.parent_id, twin.id),
        )
        self.db.execute("UPDATE events SET retired = 0 WHERE record_id = ?", (twin.id,))
        placed.id = twin.id
        self.copies.mark_back(twin)
        self.events.mark(twin.id, gone=False)
        self._spend(self.usage.note_copy, session, placed)


_HERE = "source_id = ?1 AND session_id = ?2 AND offset < ?3"
_STANDS = "retired = 0 AND superseded = 0"
# A prompt may be in a record that is a copy of another session's.
_PROMPTED = (
    "EXISTS (SELECT 1 FROM events e WHERE e.record_id = coalesce(t.copy_of, t.id)"
    " AND e.type = 'user')"
)


@dataclass(slots=True, eq=False)
class Superseding:
    """Records that a later record of the same log replaces or takes back.

    Their lines are still in the file, so the records stay; only their events are retired.
    """

    db: apsw.Connection
    rows: RecordRows
    copies: Copies
    events: EventWriter
    facts: SessionFacts

    def apply(
        self, source: Tracked, session: Session, placed: PlacedRecord, operation: Retire
    ) -> None:
        back = bool(operation.onward or operation.prompts)
        find = self._onward if back else self._replaced
        named = find(source, session, placed, operation)
        for record_id in named:
            self.copies.supersede(record_id, session.id, source.generation)
            self.events.mark(record_id, gone=True)
        if named:
            self.facts.count_again(session.id)
            self.facts.prompts_changed(session)
        if named and back:
            self.events.rejoin_taken_back(named)

    def _replaced(
        self, source: Tracked, session: Session, placed: PlacedRecord, operation: Retire
    ) -> list[RecordId]:
        """Records with the id of the operation; without a query if it is that of the record."""
        native_id = operation.native_id
        if native_id is not None and native_id == placed.record.native_id:
            standing = self.copies.standing(native_id, source.id, session.id)
            if standing:
                self.rows.flush()
            return standing
        self.rows.flush()
        # Without the plus signs SQLite would read every record of the session.
        return self._ids(
            "native_key = short_key(?4) AND native_id = ?4 AND +source_id = ?1"
            " AND +session_id = ?2 AND offset < ?3",
            (source.id, session.id, placed.offset, native_id),
        )

    def _onward(
        self, source: Tracked, session: Session, placed: PlacedRecord, operation: Retire
    ) -> list[RecordId]:
        self.rows.flush()
        here = (source.id, session.id, placed.offset)
        if operation.prompts:
            start = self._nth_prompt(here, operation.prompts)
        else:
            first = self._first_of(here, operation.native_id)
            start = (1 << 62 if first is None else first + 1) if operation.after else first or 0
        return self._ids(f"{_HERE} AND offset >= ?4", (*here, start))

    def _ids(self, condition: str, values: tuple[object, ...]) -> list[RecordId]:
        query = f"SELECT id FROM records WHERE {condition} AND {_STANDS}"
        return [record_id for (record_id,) in self.db.execute(query, values)]

    def _nth_prompt(self, here: tuple[object, ...], count: int) -> int:
        """The offset of the nth prompt from the end, or of the first if there are fewer."""
        offsets: list[Any] = self.db.execute(
            f"SELECT offset FROM records t WHERE {_HERE} AND {_STANDS} AND {_PROMPTED}"
            " ORDER BY offset DESC LIMIT ?4",
            (*here, count),
        ).fetchall()
        return int(offsets[-1][0]) if offsets else 1 << 62

    def _first_of(self, here: tuple[object, ...], native_id: str | None) -> int | None:
        """The offset of a record, if it is known."""
        offset = self.db.execute(
            "SELECT min(offset) FROM records WHERE native_key = short_key(?4) AND native_id = ?4"
            f" AND +source_id = ?1 AND +session_id = ?2 AND offset < ?3 AND {_STANDS}",
            (*here, native_id),
        ).get
        return None if offset is None else int(offset)


_OUTRANKED = (
    "SELECT r.id, r.generation, r.kind FROM session_sources m JOIN sources r ON r.id = m.source_id"
    " WHERE m.session_id = ?1 AND r.fallback > (SELECT min(o.fallback) FROM session_sources n"
    " JOIN sources o ON o.id = n.source_id WHERE n.session_id = ?1)"
)

_LIVE = (
    "SELECT id, copy_of IS NOT NULL"
    " OR EXISTS (SELECT 1 FROM records c WHERE c.copy_of = records.id)"
    " FROM records WHERE session_id = ? AND source_id = ? AND retired = 0"
)
_RETIRE = (
    "UPDATE events SET retired = ? WHERE record_id IN (SELECT value FROM json_each(?))",
    "UPDATE records SET retired = ? WHERE id IN (SELECT value FROM json_each(?))",
)


def bare(spec: SessionSpec) -> SessionSpec:
    """Without what only the best source of a session may say about it."""
    return replace(spec, title=None, project=None, folder=None)


class Mirrors:
    """Sources that repeat a better source: archived, but shown only if there is no better one.

    A conversation may be in an editor's database, in a chat of its agent and in a transcript.
    The outcome does not depend on which is read first.
    """

    def __init__(self, db: apsw.Connection, copies: Copies, facts: SessionFacts) -> None:
        self._db = db
        self._copies = copies
        self._facts = facts
        self._enrolled: set[tuple[int | None, int]] = set()  # sources with their sessions

    def enroll(self, source_id: SourceId | None, session_id: SessionId, fallback: int) -> bool:
        """Register a source that has records of a session; return whether it is new there."""
        if (source_id, session_id) in self._enrolled:
            return False
        self._enrolled.add((source_id, session_id))
        self._db.execute(
            "INSERT OR IGNORE INTO session_sources (session_id, source_id) VALUES (?, ?)",
            (session_id, source_id),
        )
        new = bool(self._db.changes())
        if fallback:
            self._db.execute("UPDATE sources SET fallback = ? WHERE id = ?", (fallback, source_id))
        return new

    def is_known_better(self, session_id: SessionId, fallback: int) -> bool:
        """Whether a better source than one that is new has the session."""
        better = (
            "SELECT EXISTS (SELECT 1 FROM session_sources m JOIN sources r ON r.id = m.source_id"
            " WHERE m.session_id = ? AND r.fallback < ?)"
        )
        return bool(self._db.execute(better, (session_id, fallback)).get)

    def is_outranked(
        self, source_id: SourceId | None, session_id: SessionId, fallback: int
    ) -> bool:
        """Whether a better source has the session."""
        return bool(fallback) and any(
            outranked == source_id for outranked, *_ in self._db.execute(_OUTRANKED, (session_id,))
        )

    def are_worse(self, session_id: SessionId) -> bool:
        """Whether some of the session's sources are outranked by another one."""
        return any(True for _ in self._db.execute(_OUTRANKED, (session_id,)))

    def retire(self, session_id: SessionId) -> bool:
        """Hide what a better source also has; return whether something was not yet hidden."""
        db = self._db
        outranked: list[Any] = db.execute(_OUTRANKED, (session_id,)).fetchall()
        for source_id, generation, _ in outranked:
            db.execute("UPDATE sources SET kind = 'mirror' WHERE id = ?", (source_id,))
            live: list[Any] = db.execute(_LIVE, (session_id, source_id)).fetchall()
            for record_id in [record_id for record_id, is_shared in live if is_shared]:
                self._copies.retire(record_id, session_id, generation)
                db.execute("UPDATE records SET retired = ? WHERE id = ?", (generation, record_id))
            alone = json.dumps([record_id for record_id, is_shared in live if not is_shared])
            for update in _RETIRE:
                db.execute(update, (generation, alone))
        self._facts.count_again(session_id)
        return any(kind != "mirror" for *_, kind in outranked)


@dataclass(slots=True, eq=False)
class Rewriting:
    """Retires what a file said before it was rewritten; records that it still has return.

    The whole file is read again in one transaction. Unchanged bytes stay in the archive; the
    others are kept beside the new ones under the number of the generation that replaced them.
    """

    db: apsw.Connection
    sessions: Sessions
    copies: Copies
    events: EventWriter
    facts: SessionFacts

    def rewind(self, source: Tracked, kept: int) -> None:
        """Retire every record of the source, to read it again from the first byte."""
        db = self.db
        source.generation += 1
        db.execute(
            "UPDATE chunks SET retired = ? WHERE source_id = ? AND retired = 0 AND offset >= ?",
            (source.generation, source.id, kept),
        )
        self.retire_records(source)
        source.archived_to = kept
        source.save_progress(db, Progress())

    def retire_records(self, source: Tracked) -> None:
        """Retire every record of the source under its generation."""
        db, new = self.db, source.generation
        db.execute(
            "UPDATE records SET retired = ? WHERE source_id = ? AND retired = 0 AND session_id IN"
            " (SELECT session_id FROM session_sources WHERE source_id = ?)",
            (new, source.id, source.id),
        )
        db.execute(
            "UPDATE warnings SET retired = ? WHERE source_id = ? AND retired = 0", (new, source.id)
        )
        # Sessions that only this file has are read from scratch.
        alone = db.execute(
            "SELECT session_id FROM session_sources s WHERE source_id = ?1 AND NOT EXISTS"
            " (SELECT 1 FROM session_sources o WHERE o.session_id = s.session_id"
            " AND o.source_id <> ?1)",
            (source.id,),
        )
        for (session_id,) in list(alone):
            self.sessions.by_id(session_id).unlearn()
            self.facts.take_back_titles(session_id)

    def finish(self, source: Tracked) -> None:
        """After rereading: hand over or retire the events of records that are gone."""
        db = self.db
        members = "SELECT session_id FROM session_sources WHERE source_id = ?"
        lost = db.execute(
            "SELECT id, session_id FROM records WHERE source_id = ? AND retired = ?"
            f" AND copy_of IS NULL AND session_id IN ({members})",
            (source.id, source.generation, source.id),
        )
        for record_id, session_id in list(lost):
            self.copies.retire(record_id, session_id, source.generation)
        self.events.detach_lost(source.id or NO_SOURCE, source.generation)
        self.facts.count_again(*(key for (key,) in db.execute(members, (source.id,))))
