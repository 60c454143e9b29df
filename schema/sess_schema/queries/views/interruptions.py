"""Turns, and how often people interrupt them.

A turn is a prompt with everything up to the next one of its session.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import apsw

from sess_schema import kinds, labels
from sess_schema.ids import EventId, SessionId
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import parts, scope
from sess_schema.queries.views.tools import is_search
from sess_schema.sums import CALLED, PROMPT

TURNS_PART = "turns"
# Turns by number of tool calls; each is the lower limit of a class.
STEPS = (0, 1, 2, 5, 10, 20, 50)


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
    responses = _costs_of_responses(db, asked)
    next_response = next(responses, None)
    current: Turn | None = None

    def with_responses(turn: Turn, until: tuple[int, int] | None = None) -> Turn:
        """Everything answered before the next prompt belongs to this one."""
        nonlocal next_response
        while next_response is not None and next_response[0] == turn.session:
            if until is not None and next_response[:2] >= until:
                break
            turn.requests += 1
            turn.cost_nano += next_response[2]
            next_response = next(responses, None)
        return turn

    for session, event, said, kind, status, ts, summary in db.execute(
        "SELECT s.id, e.id, e.type, e.kind, e.status, e.ts,"
        f" iif(e.kind = '{kinds.SHELL}', e.summary, NULL)"
        f" {wanted.sql} AND (e.type = 'tool_use' OR {PROMPT} OR"
        f" e.label = '{labels.INTERRUPTED}') AND {CALLED} ORDER BY s.id, e.ts, e.id",
        wanted.values,
    ):
        place = (session, -1 if ts is None else ts)
        if current is not None and (session != current.session or said == "user"):
            yield with_responses(current, place)
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
        yield with_responses(current)


Response = tuple[int, int, int]  # session, time, cost


def _costs_of_responses(db: apsw.Connection, asked: Stats) -> Iterator[Response]:
    wanted = scope.responses(db, asked)
    yield from db.execute(
        f"SELECT u.session_id, u.ts, coalesce(u.cost_nano, 0) {wanted.sql}"
        " AND u.ts IS NOT NULL ORDER BY u.session_id, u.ts, u.id",
        wanted.values,
    )


@dataclass(slots=True)
class Sized:
    """Turns with about the same number of tool calls."""

    turns: int = 0
    interrupted: int = 0  # with an interruption or a refusal


@dataclass(slots=True)
class Interruptions:
    turns: int = 0
    interrupted_turns: int = 0
    markers: int = 0
    refusals: int = 0
    calls: int = 0
    searches: int = 0
    requests_per_turn: list[int] = field(default_factory=list)  # sorted
    calls_per_turn: list[int] = field(default_factory=list)  # sorted
    by_calls: dict[int, Sized] = field(default_factory=dict)  # by lower limit, from `STEPS`

    @property
    def rate(self) -> float | None:
        return self.interrupted_turns / self.turns if self.turns else None

    @property
    def without_tools(self) -> float | None:
        return self.calls_per_turn.count(0) / self.turns if self.turns else None

    @property
    def search_share(self) -> float | None:
        return self.searches / self.calls if self.calls else None


def read_interruptions(db: apsw.Connection, asked: Stats) -> Interruptions:
    totals = Interruptions(by_calls={step: Sized() for step in STEPS})
    for _, each in parts.of(db, asked, TURNS_PART, turns_by_session):
        for calls, requests, interrupted, denied, searches in each:
            stopped = bool(interrupted or denied)
            totals.turns += 1
            totals.interrupted_turns += stopped
            totals.markers += interrupted
            totals.refusals += denied
            totals.requests_per_turn.append(requests)
            totals.calls_per_turn.append(calls)
            sized = totals.by_calls[STEPS[bisect_right(STEPS, calls) - 1]]
            sized.turns += 1
            sized.interrupted += stopped
            totals.calls += calls
            totals.searches += searches
    totals.requests_per_turn.sort()
    totals.calls_per_turn.sort()
    return totals


def turns_by_session(db: apsw.Connection, asked: Stats) -> parts.Counted:
    for session, each in groupby(turns(db, asked), key=lambda turn: turn.session):
        yield session, {TURNS_PART: [*map(counts_of, each)]}


def counts_of(turn: Turn) -> list[int]:
    """Calls, responses, interruptions, denied calls, and searches among the calls."""
    searches = sum(is_search(call.kind, call.summary) for call in turn.calls)
    return [len(turn.calls), turn.requests, turn.interrupted, turn.denied, searches]
