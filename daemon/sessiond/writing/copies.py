"""Records in several places: forks, resumes, hard links, replays after a compaction.

Each copy is a turn; one of them owns the events. Whatever is read first, it is the one in the
session that started first.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sess_schema.short_keys import short_key
from sessiond.engines.slices import Turn
from sessiond.reading.tracked import Tracked
from sessiond.writing.replays import Replays
from sessiond.writing.sessions import Session

if TYPE_CHECKING:
    from sessiond.writing.transaction import Transaction

_TWIN = "id, session_id, source_id, retired, superseded, forked, copy_of"


def same_moment(one: str, other: str) -> str:
    """In SQL: two turns say the same at the same time, as copies with other ids do."""
    return (
        f"{one}.ts = {other}.ts AND {one}.digest & 65535 = {other}.digest & 65535"
        f" AND {one}.digest = {other}.digest"
    )


@dataclass(slots=True)
class Twin:
    """A turn with the same content as one that is being read."""

    id: int
    session_id: int
    source_id: int
    retired: int
    superseded: int
    forked: int
    copy_of: int | None

    @property
    def left(self) -> bool:
        """Whether it is no longer in its file, or a later record replaced it."""
        return bool(self.retired or self.superseded)


@dataclass(slots=True)
class Alike:
    """Turns with one id and the same words, oldest first."""

    twins: deque[Twin] = field(default_factory=deque)
    returning: deque[Twin] = field(default_factory=deque)  # they left the file that is being read


Twins = dict[tuple[str | None, int], Alike]  # by native id and digest


class Copies:
    """Finds the twins of records and keeps one owner for their events."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._db = transaction.db
        self._unwritten: dict[int, Twin] = {}  # turns of the current slice
        # All twins of the current slice by id and by native id, if one of its records retires any.
        self._retires = False
        self._by_id: dict[int, Twin] = {}
        self._by_name: dict[str, list[Twin]] = {}
        self._replays = Replays(transaction)

    def begin(self, source: Tracked, turns: list[Turn]) -> Twins:
        """Stored turns of the agent by native id and digest, which a fork or a link may copy."""
        self._by_id, self._by_name = {}, {}
        self._replays.begin(source.id)
        self._retires = any(turn.record.retires for turn in turns)
        known: Twins = {}
        named = [short_key(turn.record.native_id) for turn in turns if turn.record.native_id]
        nameless = [turn.digest for turn in turns if not turn.record.native_id]
        for condition, wanted in (
            ("native_key IN (SELECT value FROM json_each(?))", named),
            ("native_id IS NULL AND digest IN (SELECT value FROM json_each(?))", nameless),
        ):
            if not wanted:
                continue
            for native_id, digest, *rest in self._db.execute(
                f"SELECT native_id, digest, {_TWIN} FROM turns WHERE {condition}"
                " AND (SELECT agent FROM sources s WHERE s.id = source_id) = ? ORDER BY id",
                (json.dumps(wanted), source.agent),
            ):
                twin = Twin(*rest)
                self._note(native_id, twin)
                alike = known.setdefault((native_id, digest), Alike())
                alike.twins.append(twin)
                if twin.retired and twin.source_id == source.id:
                    alike.returning.append(twin)
        return known

    def add(self, session: Session, twin: Twin, turn: Turn, original: Twin | None) -> None:
        """Add a turn of the current slice that is not in the index yet."""
        self._unwritten[twin.id] = twin
        if self._retires:
            self._note(turn.record.native_id, twin)
        if original is None:
            self._replays.add(session, turn)
        elif original.session_id != session.id or twin.copy_of is None:
            self._replays.forget()  # the session shows what another one says, or owns it now

    def _note(self, native_id: str | None, twin: Twin) -> None:
        self._by_id[twin.id] = twin
        if native_id is not None:
            self._by_name.setdefault(native_id, []).append(twin)

    def standing(self, native_id: str, source_id: int | None, session_id: int) -> list[int]:
        """Turns of a log that are shown and have a native id of the current slice."""
        return [
            twin.id
            for twin in self._by_name.get(native_id, ())
            if twin.source_id == source_id and twin.session_id == session_id and not twin.left
        ]

    def returned(self, twin: Twin) -> None:
        """A record that had left its file is in it again."""
        twin.retired = twin.superseded = 0
        self._replays.forget()

    def written(self) -> None:
        self._unwritten.clear()

    def replayed(self, session: Session, turn: Turn) -> Twin | None:
        """Find the original of a record that a compaction repeats: new id, same time and text."""
        record = turn.record
        if (
            record.ts is None
            or record.ts_from is not None
            or session.ended_at is None
            or record.ts >= session.ended_at
            or not (record.events or record.results)
        ):
            return None
        turn_id = self._replays.original(session, turn)
        return None if turn_id is None else self._turn(turn_id)

    def _turn(self, turn_id: int) -> Twin:
        return self._unwritten.get(turn_id) or Twin(
            *next(self._db.execute(f"SELECT {_TWIN} FROM turns WHERE id = ?", (turn_id,)))
        )

    def owner_of(self, session: Session, turn: Turn, turn_id: int, twin: Twin | None) -> int | None:
        """The turn that owns the events of a new one; None if it owns them itself.

        It takes them over from a twin if its session started first or the twin has left.
        """
        if twin is None:
            return None
        owner = self._root(twin)
        if owner.session_id == session.id and not owner.left:
            return owner.id
        new = (False, int(turn.record.forked), *session.age())
        above = self._transaction.sessions.by_id(owner.session_id)
        old = (owner.left, owner.forked, *above.age())
        if new >= old:
            return owner.id
        self._transaction.events.retell(owner.id, turn.record)
        self.hand_over(owner.id, owner.session_id, turn_id, session.id, turn.record.ts)
        owner.copy_of = turn_id
        if turn.record.native_id:
            self._transaction.titles.arrived([turn.record.native_id], above, session)
        return None

    def _root(self, twin: Twin) -> Twin:
        """The turn that owns a copy's events."""
        while twin.copy_of is not None:
            twin = self._turn(twin.copy_of)
        return twin

    def hand_over(
        self, old: int, old_session: int, new: int, session_id: int, ts: int | None
    ) -> None:
        """Make another turn, of the time `ts`, the owner of a copied record's events and usage."""
        db = self._db
        self._replays.forget()
        self._transaction.usage.save()
        self._transaction.events.move(old, new, session_id)
        self._transaction.counters.changed(old_session, session_id)
        db.execute(
            "UPDATE events SET turn_id = ?, session_id = ?, retired = 0 WHERE turn_id = ?",
            (new, session_id, old),
        )
        db.execute("UPDATE events SET result_turn_id = ? WHERE result_turn_id = ?", (new, old))
        db.execute("UPDATE usage SET turn_id = ? WHERE turn_id = ?", (new, old))
        db.execute("UPDATE turns SET copy_of = ? WHERE copy_of = ?", (new, old))
        db.execute("UPDATE turns SET copy_of = NULL WHERE id = ?", (new,))
        db.execute("UPDATE turns SET copy_of = ? WHERE id = ?", (new, old))
        self._transaction.events.date((old, old_session), (new, session_id), ts)

    def supersede(self, turn_id: int, session_id: int, generation: int) -> None:
        """Retire a record that a later record of its file replaced or took back."""
        self._db.execute("UPDATE turns SET superseded = 1 WHERE id = ?", (turn_id,))
        if turn_id in self._by_id:
            self._by_id[turn_id].superseded = 1
        self.retire(turn_id, session_id, generation)

    def retire(self, turn_id: int, session_id: int, generation: int) -> None:
        """Retire a record that left its source; a copy inherits its events, if there is one."""
        self._replays.forget()
        copies: list[tuple[bool, Any, int, int, int | None]] = [
            (bool(superseded), self._transaction.sessions.by_id(holder).age(), copy, holder, ts)
            for copy, holder, ts, superseded in self._db.execute(
                "SELECT id, session_id, ts, superseded FROM turns"
                " WHERE copy_of = ? AND retired = 0",
                (turn_id,),
            )
        ]
        # Events that nobody shows are those of the first session that did, as all others are.
        here = (True, self._transaction.sessions.by_id(session_id).age(), turn_id, session_id, None)
        superseded, _, heir, holder, ts = min((*copies, here))
        if heir != turn_id:
            self.hand_over(turn_id, session_id, heir, holder, ts)
            if turn_id in self._by_id:
                self._by_id[turn_id].copy_of = heir
        if superseded:
            self._db.execute("UPDATE events SET retired = ? WHERE turn_id = ?", (generation, heir))
            if heir != turn_id:
                self._transaction.events.left(heir)
