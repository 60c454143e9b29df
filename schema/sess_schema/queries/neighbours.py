"""The events just before and after an event of a session."""

from __future__ import annotations

import apsw

from sess_schema.classes import TYPE_CHECKING, dataclass

if TYPE_CHECKING:
    from sess_schema.session.reader import Entry, Reader

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One event, abridged."""

    event: int
    ts: int | None
    ts_from: str | None
    type: str
    tool: str | None
    status: str | None
    text: str  # its first characters


class Neighbours:
    """Reads the order of each session once."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._readers: dict[int, Reader] = {}

    def around(
        self, session: int, event: int, before: int, after: int
    ) -> tuple[list[Neighbour], list[Neighbour]]:
        if session not in self._readers:
            from sess_schema.session.reader import Reader  # noqa: PLC0415 - few searches ask

            self._readers[session] = Reader(self._db, session)
        reader = self._readers[session]
        if not reader.holds(event):
            return [], []
        at = reader.order.index(event)
        return (
            [*map(_short, reader.some(reader.order[max(0, at - before) : at], _SHOWN))],
            [*map(_short, reader.some(reader.order[at + 1 : at + 1 + after], _SHOWN))],
        )


def _short(entry: Entry) -> Neighbour:
    text = entry.text or entry.input
    if not entry.text and entry.summary is not None:
        text = entry.summary[:_SHOWN]
    return Neighbour(
        entry.event, entry.ts, entry.ts_from, entry.type, entry.tool, entry.status, text
    )
