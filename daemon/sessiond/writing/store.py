"""Slices to rows. Everything a slice changes is written before its transaction commits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apsw

from sess_schema import sums
from sessiond.engines.slices import Slice, Turn
from sessiond.prices.pricing import Pricer
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Record, SessionSpec, Usage
from sessiond.writing import mirrors
from sessiond.writing.chunks import Chunks
from sessiond.writing.events import EventWriter
from sessiond.writing.sessions import Session, Sessions
from sessiond.writing.titles import Titles
from sessiond.writing.usage import UsageWriter


@dataclass(slots=True)
class Known:
    """A turn in the index that says the same as one that is being read."""

    id: int
    session_id: int
    source_id: int
    retired: int
    forked: int
    copy_of: int | None


class Store:
    """The writer's half of the index. The caller opens and commits the transactions."""

    def __init__(self, db: apsw.Connection, pricer: Pricer | None = None) -> None:
        self.db = db
        self.chunks = Chunks(db)
        self.sessions = Sessions(db)
        self.events = EventWriter(db, self.sessions, self.chunks)
        self.titles = Titles(db, self.sessions)
        self._recount: set[int] = set()  # sessions whose copies changed what they show
        self._fresh: dict[int, Known] = {}  # turns of this slice, not written yet
        self.usage = UsageWriter(db, self.sessions, pricer=pricer)
        self._next_turn: int | None = None

    def begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.titles.settle()
        for session_id in self._recount | self.events.reshaped:
            self.recount(session_id)
        self.sessions.save()
        self.usage.save()
        sums.settle(self.db)
        self.events.rows.index()
        self.db.execute("COMMIT")
        self._forget()

    def roll_back(self) -> None:
        try:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
        finally:
            self._forget()

    def _forget(self) -> None:
        self.sessions.forget()
        self.events.forget()
        self.titles.forget()
        self._recount.clear()
        self._fresh.clear()
        self.usage.forget()
        self._next_turn = None

    def apply(self, source: Tracked, spec: SessionSpec, part: Slice) -> None:
        """Write one slice of a transcript and move the source's checkpoint past it."""
        source.save_identity(self.db)
        self.chunks.add(source, part)
        self.chunks.add_problems(source, part.problems)
        if part.turns:
            self.write_turns(source, spec, part.turns)
        source.save_progress(self.db, part.progress)

    def replace_attachment(self, source: Tracked, fd: int) -> int:
        """Archive an overflowed output and complete the event that waits for it.

        Returns how many warnings that gave.
        """
        whole = self.chunks.replace(source, fd)
        self.events.fill_overflow(source.path)
        return 0 if whole else 1

    def write_turns(self, source: Tracked, spec: SessionSpec, turns: list[Turn]) -> None:
        db = self.db
        main = self.sessions.get(source.agent, spec)
        known = self._known_turns(turns)
        self.events.begin(spec, turns)
        if self._next_turn is None:
            self._next_turn = db.execute("SELECT coalesce(max(id), 0) FROM turns").get
        rows: list[tuple[Any, ...]] = []
        chains: dict[str, Session] = {}  # sidechain records of this slice
        replays: dict[tuple[int, int | None, int], Known] = {}  # what each session said, and when
        touched: set[int] = set()
        needless: dict[int, bool] = {}  # sessions that a better source tells about
        for turn in turns:
            record = turn.record
            session = main
            if record.sidechain and spec.kind == "main":
                session = self._sidechain(main, record, chains)
            elif record.session and record.session != spec.native_id:
                session = self.sessions.get(source.agent, SessionSpec(record.session))
            if session.id not in touched:
                touched.add(session.id)
                mirrors.enroll(db, source.id, session.id, spec.fallback)
                needless[session.id] = self.is_needless(source, session, spec)
            if not needless[session.id]:
                session.learn(record)
                for title in record.titles:
                    self.titles.give(session, title, turn.offset)
            for link in record.links:
                self.sessions.link(source.agent, spec, session, link)
            same = known.setdefault((record.native_id, turn.digest), [])
            if source.part_of is None:
                same = same or self._replayed(session, turn, replays)
            if self._return_retired(source, turn, same):
                continue
            self._next_turn += 1
            turn_id = turn.id = self._next_turn
            copy_of = self._copy_of(session, turn, turn_id, same)
            rows.append(
                (
                    turn_id,
                    source.id,
                    session.id,
                    turn.offset,
                    turn.length,
                    turn.line,
                    record.kind,
                    record.role,
                    record.native_id,
                    record.parent_id,
                    record.ts,
                    record.ts_from,
                    turn.digest,
                    int(record.forked),
                    copy_of,
                )
            )
            new = Known(turn_id, session.id, source.id or 0, 0, int(record.forked), copy_of)
            self._fresh[turn_id] = new
            known[record.native_id, turn.digest] = [*same, new]
            if record.events or record.results:
                replays.setdefault((session.id, record.ts, turn.digest), new)
            if same:
                self._recount.add(session.id)
                self.events.share(session, copy_of or turn_id)
                self.events.settle(record)
                self._use(self.usage.hold, session, turn_id, record)
                continue
            session.count(self.events.add(session, turn_id, record))
            self._use(self.usage.add, session, turn_id, record)
        db.executemany(
            "INSERT INTO turns (id, source_id, session_id, offset, length, line, kind, role,"
            " native_id, parent_id, ts, ts_from, digest, forked, copy_of)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        self._fresh.clear()
        self.events.flush()
        for session_id, retire in needless.items():
            if retire:
                self.retire_mirrors(session_id)
        self.titles.arrived([t.record.native_id for t in turns if t.record.native_id], main)

    def _use(
        self,
        told: Callable[[Session, int, Record, Usage], None],
        session: Session,
        turn_id: int,
        record: Record,
    ) -> None:
        if record.usage is not None:
            if record.usage_agent:
                session = self.sessions.sidechain(session, record.usage_agent)
            for usage in (record.usage, *record.advice):
                told(session, turn_id, record, usage)

    def refresh(self, source: Tracked, spec: SessionSpec) -> None:
        """A sidecar may have come after the last line of its transcript."""
        if source.progress.lines:
            self.sessions.get(source.agent, spec)

    def _known_turns(self, turns: list[Turn]) -> dict[tuple[str | None, int], list[Known]]:
        """Stored turns by native id and digest: what a fork or a hard link copies."""
        known: dict[tuple[str | None, int], list[Known]] = {}
        named = [turn.record.native_id for turn in turns if turn.record.native_id]
        nameless = [turn.digest for turn in turns if not turn.record.native_id]
        for condition, wanted in (
            ("native_id IN (SELECT value FROM json_each(?))", named),
            ("native_id IS NULL AND digest IN (SELECT value FROM json_each(?))", nameless),
        ):
            if not wanted:
                continue
            for native_id, digest, *rest in self.db.execute(
                "SELECT native_id, digest, id, session_id, source_id, retired, forked, copy_of"
                f" FROM turns WHERE {condition} ORDER BY id",
                (json.dumps(wanted),),
            ):
                known.setdefault((native_id, digest), []).append(Known(*rest))
        return known

    def _replayed(
        self, session: Session, turn: Turn, replays: dict[tuple[int, int | None, int], Known]
    ) -> list[Known]:
        """A compaction writes preserved records again: new native ids, old times, same words."""
        record = turn.record
        if (
            record.ts is None
            or record.ts_from is not None
            or session.ended_at is None
            or record.ts >= session.ended_at
            or not (record.events or record.results)
        ):
            return []
        here = replays.get((session.id, record.ts, turn.digest))
        if here is not None:
            return [here]
        return [
            Known(*row)
            for row in self.db.execute(
                "SELECT id, session_id, source_id, retired, forked, copy_of FROM turns"
                " WHERE session_id = ? AND ts = ? AND digest = ? AND retired = 0 LIMIT 1",
                (session.id, record.ts, turn.digest),
            )
        ]

    def _owner(self, known: Known) -> Known:
        """The turn that a copy goes back to."""
        while known.copy_of is not None:
            fresh = self._fresh.get(known.copy_of)
            known = fresh or Known(
                *next(
                    iter(
                        self.db.execute(
                            "SELECT id, session_id, source_id, retired, forked, copy_of"
                            " FROM turns WHERE id = ?",
                            (known.copy_of,),
                        )
                    )
                )
            )
        return known

    def _sidechain(self, main: Session, record: Record, chains: dict[str, Session]) -> Session:
        """The subagent that a sidechain record belongs to: its parent's, or a new one."""
        if record.agent_id:
            return self.sessions.sidechain(main, f"agent-{record.agent_id}")
        parent = chains.get(record.parent_id or "")
        if parent is None and record.parent_id:
            for (above,) in self.db.execute(
                "SELECT t.session_id FROM turns t JOIN sessions s ON s.id = t.session_id"
                " WHERE t.native_id = ? AND s.parent_id = ? LIMIT 1",
                (record.parent_id, main.id),
            ):
                parent = self.sessions.by_id(above)
        session = parent or self.sessions.sidechain(main, f"sidechain-{record.native_id}")
        if parent is None:
            self.events.await_prompt(main, session, record)
        if record.native_id:
            chains[record.native_id] = session
        return session

    def _return_retired(self, source: Tracked, turn: Turn, same: list[Known]) -> bool:
        """A rewritten file still holds this record: it keeps its row and its events."""
        for known in same:
            if known.retired and known.source_id == source.id:
                self.db.execute(
                    "UPDATE turns SET retired = 0, offset = ?, length = ?, line = ? WHERE id = ?",
                    (turn.offset, turn.length, turn.line, known.id),
                )
                self.db.execute("UPDATE events SET retired = 0 WHERE turn_id = ?", (known.id,))
                known.retired = 0
                turn.id = known.id
                self.events.returned(known.id)
                return True
        return False

    def _copy_of(self, session: Session, turn: Turn, turn_id: int, same: list[Known]) -> int | None:
        """The turn that owns the events; the new one itself takes over if it came first."""
        if not same:
            return None
        owner = self._owner(same[0])
        if owner.session_id == session.id and not owner.retired:
            return owner.id
        new = (0, int(turn.record.forked), *session.age())
        above = self.sessions.by_id(owner.session_id)
        old = (int(owner.retired > 0), owner.forked, *above.age())
        if new >= old:
            return owner.id
        self.events.flush()
        self.hand_over(owner.id, owner.session_id, turn_id, session.id)
        owner.copy_of = turn_id
        if turn.record.native_id:
            self.titles.arrived([turn.record.native_id], above, session)
        return None

    def hand_over(self, old: int, old_session: int, new: int, session_id: int) -> None:
        """Another turn becomes the owner of what a copied record produced."""
        db = self.db
        self.usage.save()
        self.events.move(old, new, session_id)
        self._recount |= {old_session, session_id}
        db.execute(
            "UPDATE events SET turn_id = ?, session_id = ?, retired = 0 WHERE turn_id = ?",
            (new, session_id, old),
        )
        db.execute("UPDATE events SET result_turn_id = ? WHERE result_turn_id = ?", (new, old))
        db.execute("UPDATE usage SET turn_id = ? WHERE turn_id = ?", (new, old))
        db.execute("UPDATE turns SET copy_of = ? WHERE copy_of = ?", (new, old))
        db.execute("UPDATE turns SET copy_of = NULL WHERE id = ?", (new,))
        db.execute("UPDATE turns SET copy_of = ? WHERE id = ?", (new, old))

    def retire(self, turn_id: int, session_id: int, generation: int) -> None:
        """A record left its source: a copy inherits its events, or they leave with it."""
        heirs = self.db.execute(
            "SELECT id, session_id FROM turns WHERE copy_of = ? AND retired = 0", (turn_id,)
        )
        heir = min(heirs, key=lambda turn: self.sessions.by_id(turn[1]).age(), default=None)
        if heir:
            self.hand_over(turn_id, session_id, heir[0], heir[1])
        else:
            self.db.execute(
                "UPDATE events SET retired = ? WHERE turn_id = ?", (generation, turn_id)
            )

    def is_needless(self, source: Tracked, session: Session, spec: SessionSpec) -> bool:
        return bool(spec.fallback) and source.id in mirrors.mirrors(self.db, session.id)

    def retire_mirrors(self, session_id: int) -> bool:
        """Hide what a better source tells as well; whether there was anything to hide."""
        found = mirrors.mirrors(self.db, session_id)
        for source_id, generation in found.items():
            for turn_id in mirrors.live_turns(self.db, session_id, source_id):
                self.retire(turn_id, session_id, generation)
                self.db.execute("UPDATE turns SET retired = ? WHERE id = ?", (generation, turn_id))
        self._recount.add(session_id)
        return bool(found)

    def recount_later(self, session_id: int) -> None:
        self._recount.add(session_id)

    def part_lost(self, source: Tracked) -> None:
        self.events.part_lost(source.id or 0, source.generation)

    def recount(self, session_id: int) -> None:
        """Set the counters of a session from its rows."""
        session = self.sessions.by_id(session_id)
        session.turns = self.db.execute(
            "SELECT count(*) FROM turns WHERE session_id = ?", (session_id,)
        ).get
        counts = self.db.execute(
            "SELECT count(*), count(*) FILTER (WHERE type = 'user'),"
            " count(*) FILTER (WHERE type = 'tool_use') FROM events WHERE id IN ("
            " SELECT e.id FROM turns t JOIN events e ON e.turn_id = coalesce(t.copy_of, t.id)"
            " WHERE t.session_id = ? AND t.retired = 0)",
            (session_id,),
        )
        session.events, session.prompts, session.tool_calls = next(iter(counts))
