"""The events just before and after an event of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from sess_schema.ids import EventId, SessionId
    from sess_schema.session.reader import Entry, Reader

_SHOWN = 300  # characters


class Neighbours:
    """Reads the order of each session once."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._readers: dict[int, Reader] = {}

    def around(
        self, session: SessionId, event: EventId, before: int, after: int
    ) -> tuple[list[Entry], list[Entry]]:
        if session not in self._readers:
            from sess_schema.session.reader import Reader  # few searches ask

            self._readers[session] = Reader(self._db, session)
        reader = self._readers[session]
        if not reader.holds(event):
            return [], []
        at = reader.order.index(event)
        return (
            reader.some(reader.order[max(0, at - before) : at], _SHOWN),
            reader.some(reader.order[at + 1 : at + 1 + after], _SHOWN),
        )

    @staticmethod
    def words(entry: Entry) -> str:
        """Its first words, or what it calls."""
        if not entry.text and entry.summary is not None:
            return entry.summary[:_SHOWN]
        return entry.text or entry.input
