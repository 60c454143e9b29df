"""Turns: each is a prompt with everything up to the next one of its session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw

from sess_schema import kinds, labels
from sess_schema.ids import EventId, SessionId
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import scope
from sess_schema.sums import CALLED, PROMPT


class Call(NamedTuple):
    event: EventId
    kind: str | None
    status: str | None
    summary: str | None  # of a shell command


@dataclass(slots=True)
class Turn:
    session: SessionId
    prompt: int  # its event
    calls: list[Call] = field(default_factory=list)
    interrupted: int = 0  # times a person stopped it
    requests: int = 0
    cost_nano: int = 0

    @property
    def denied(self) -> int:
        return sum(call.status == "denied" for call in self.calls)


def turns(db: apsw.Connection, asked: Stats) -> Iterator[Turn]:
    """The turns whose prompt is in the window, limited to what is in the window."""
    wanted = scope.events(db, asked)  # first: it may need a function that no statement uses
    responses = _responses(db, asked)
    next_response = next(responses, None)
    current: Turn | None = None
    for session, event, said, kind, status, ts, summary in db.execute(
        "SELECT s.id, e.id, e.type, e.kind, e.status, e.ts,"
        f" iif(e.kind = '{kinds.SHELL}', e.summary, NULL)"
        f" {wanted.sql} AND (e.type = 'tool_use' OR {PROMPT} OR"
        f" e.label = '{labels.INTERRUPTED}') AND {CALLED} ORDER BY s.id, e.ts, e.id",
        wanted.values,
    ):
        place = (session, -1 if ts is None else ts)
        if current is not None and (session != current.session or said == "user"):
            # Everything answered before the next prompt belongs to this one.
            own = current.session
            while next_response and next_response[0] == own and next_response[:2] < place:
                current.requests += 1
                current.cost_nano += next_response[2]
                next_response = next(responses, None)
            yield current
            current = None
        if said == "user":
            while next_response is not None and next_response[:2] < place:
                next_response = next(responses, None)
            current = Turn(session, event)
        elif current is not None and said == "tool_use":
            current.calls.append(Call(event, kind, status, summary))
        elif current is not None:
            current.interrupted += 1
    if current is not None:
        while next_response is not None and next_response[0] == current.session:
            current.requests += 1
            current.cost_nano += next_response[2]
            next_response = next(responses, None)
        yield current


Response = tuple[int, int, int]  # session, time, cost


def _responses(db: apsw.Connection, asked: Stats) -> Iterator[Response]:
    wanted = scope.responses(db, asked)
    yield from db.execute(
        f"SELECT u.session_id, u.ts, coalesce(u.cost_nano, 0) {wanted.sql}"
        " AND u.ts IS NOT NULL ORDER BY u.session_id, u.ts, u.id",
        wanted.values,
    )
