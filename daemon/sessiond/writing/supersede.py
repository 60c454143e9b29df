"""Records that a later record of the same log replaces or takes back.

Their lines are still in the file, so the turns stay; only their events are retired.
"""

from __future__ import annotations

from typing import Any

import apsw

from sess_schema.ids import RecordId
from sessiond.engines.slices import Turn
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Retire
from sessiond.writing.copies import Copies
from sessiond.writing.events import EventWriter
from sessiond.writing.session_facts import SessionFacts
from sessiond.writing.sessions import Session
from sessiond.writing.turn_rows import TurnRows

_HERE = "source_id = ?1 AND session_id = ?2 AND offset < ?3"
_STANDS = "retired = 0 AND superseded = 0"
# A prompt may be in a record that is a copy of another session's.
_PROMPTED = (
    "EXISTS (SELECT 1 FROM events e WHERE e.turn_id = coalesce(t.copy_of, t.id)"
    " AND e.type = 'user')"
)


class Superseding:
    """Retires the events of the records that an operation names."""

    def __init__(
        self,
        db: apsw.Connection,
        rows: TurnRows,
        *,
        copies: Copies,
        events: EventWriter,
        facts: SessionFacts,
    ) -> None:
        self._db = db
        self._rows = rows
        self._copies = copies
        self._events = events
        self._facts = facts

    def apply(self, source: Tracked, session: Session, turn: Turn, operation: Retire) -> None:
        back = bool(operation.onward or operation.prompts)
        find = self._onward if back else self._replaced
        named = find(source, session, turn, operation)
        for turn_id in named:
            self._copies.supersede(turn_id, session.id, source.generation)
            self._events.mark_gone(turn_id)
        if named:
            self._facts.count_again(session.id)
            self._facts.prompts_changed(session)
        if named and back:
            self._events.rejoin_taken_back(named)

    def _replaced(
        self, source: Tracked, session: Session, turn: Turn, operation: Retire
    ) -> list[RecordId]:
        """Turns with the id of the operation; without a query if it is that of the record."""
        native_id = operation.native_id
        if native_id is not None and native_id == turn.record.native_id:
            standing = self._copies.standing(native_id, source.id, session.id)
            if standing:
                self._rows.flush()
            return standing
        self._rows.flush()
        # Without the plus signs SQLite would read every turn of the session.
        return self._ids(
            "native_key = short_key(?4) AND native_id = ?4 AND +source_id = ?1"
            " AND +session_id = ?2 AND offset < ?3",
            (source.id, session.id, turn.offset, native_id),
        )

    def _onward(
        self, source: Tracked, session: Session, turn: Turn, operation: Retire
    ) -> list[RecordId]:
        self._rows.flush()
        here = (source.id, session.id, turn.offset)
        if operation.prompts:
            start = self._nth_prompt(here, operation.prompts)
        else:
            first = self._first_of(here, operation.native_id)
            start = (1 << 62 if first is None else first + 1) if operation.after else first or 0
        return self._ids(f"{_HERE} AND offset >= ?4", (*here, start))

    def _ids(self, condition: str, values: tuple[object, ...]) -> list[RecordId]:
        query = f"SELECT id FROM turns WHERE {condition} AND {_STANDS}"
        return [turn_id for (turn_id,) in self._db.execute(query, values)]

    def _nth_prompt(self, here: tuple[object, ...], count: int) -> int:
        """The offset of the nth prompt from the end, or of the first if there are fewer."""
        offsets: list[Any] = self._db.execute(
            f"SELECT offset FROM turns t WHERE {_HERE} AND {_STANDS} AND {_PROMPTED}"
            " ORDER BY offset DESC LIMIT ?4",
            (*here, count),
        ).fetchall()
        return int(offsets[-1][0]) if offsets else 1 << 62

    def _first_of(self, here: tuple[object, ...], native_id: str | None) -> int | None:
        """The offset of a record, if it is known."""
        offset = self._db.execute(
            "SELECT min(offset) FROM turns WHERE native_key = short_key(?4) AND native_id = ?4"
            f" AND +source_id = ?1 AND +session_id = ?2 AND offset < ?3 AND {_STANDS}",
            (*here, native_id),
        ).get
        return None if offset is None else int(offset)
