"""What the finder shows about a session, cached until the index changes."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from sess_common.escape import safe
from sess_schema.ids import SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow, ShortIds


@dataclass(frozen=True, slots=True)
class Card:
    row: SessionRow
    name: str  # the short id
    title: str


class Cards:
    def __init__(self) -> None:
        self._version: int | None = None
        self._known: dict[SessionId, Card] = {}
        self._ids: ShortIds | None = None

    def refresh(self, db: apsw.Connection) -> None:
        version = db.pragma("data_version")
        if version != self._version:
            self._version = version
            self._known.clear()
            self._ids = None

    def of(self, db: apsw.Connection, key: SessionId) -> Card:
        return self._known.get(key) or self.made(db, sessions.by_key(db, key))

    def made(self, db: apsw.Connection, row: SessionRow) -> Card:
        if self._ids is None:
            self._ids = ShortIds(db)
        title = " ".join(safe(sessions.title_of(db, row)).split())
        card = self._known[row.key] = Card(row, self._ids.of(row), title)
        return card
