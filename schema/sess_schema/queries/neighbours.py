"""What happened just before and after an event, in the order of its session."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One event in short."""

    event: int
    ts: int | None
    type: str
    tool: str | None
    status: str | None
    text: str  # its first characters


class Neighbours:
    """Asks for the order of each session once."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._orders: dict[int, list[int]] = {}

    def around(
        self, session: int, event: int, before: int, after: int
    ) -> tuple[list[Neighbour], list[Neighbour]]:
        order = self._order(session)
        if event not in order:
            return [], []
        at = order.index(event)
        return (
            [self._short(one) for one in order[max(0, at - before) : at]],
            [self._short(one) for one in order[at + 1 : at + 1 + after]],
        )

    def _order(self, session: int) -> list[int]:
        if session not in self._orders:
            rows = self._db.execute(
                "SELECT e.id FROM turns t JOIN events e ON e.turn_id = coalesce(t.copy_of, t.id)"
                " WHERE t.session_id = ? AND t.retired = 0 AND e.retired = 0"
                " ORDER BY t.source_id, t.offset, t.id, e.block, e.id",
                (session,),
            )
            self._orders[session] = list(dict.fromkeys(event for (event,) in rows))
        return self._orders[session]

    def _short(self, event: int) -> Neighbour:
        (row,) = self._db.execute(
            "SELECT e.id, e.ts, e.type, e.tool, e.status, substr(CASE WHEN x.text != '' THEN x.text"
            f" WHEN e.summary IS NOT NULL THEN e.summary ELSE x.input END, 1, {_SHOWN})"
            " FROM events e JOIN event_texts x ON x.id = e.id WHERE e.id = ?",
            (event,),
        )
        return Neighbour(*row)
