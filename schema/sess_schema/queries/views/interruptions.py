"""How often people interrupt, and how many steps a turn takes."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import groupby

import apsw

from sess_schema.queries.stats import Stats
from sess_schema.queries.views import parts
from sess_schema.queries.views.parts import Counted
from sess_schema.queries.views.programs import is_search
from sess_schema.queries.views.turns import Turn, turns

PART = "turns"
# Turns by number of tool calls; each is the lower limit of a class.
STEPS = (0, 1, 2, 5, 10, 20, 50)


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


def read(db: apsw.Connection, asked: Stats) -> Interruptions:
    found = Interruptions(by_calls={step: Sized() for step in STEPS})
    for _, each in parts.of(db, asked, PART, by_session):
        for calls, requests, interrupted, denied, searches in each:
            stopped = bool(interrupted or denied)
            found.turns += 1
            found.interrupted_turns += stopped
            found.markers += interrupted
            found.refusals += denied
            found.requests_per_turn.append(requests)
            found.calls_per_turn.append(calls)
            sized = found.by_calls[STEPS[bisect_right(STEPS, calls) - 1]]
            sized.turns += 1
            sized.interrupted += stopped
            found.calls += calls
            found.searches += searches
    found.requests_per_turn.sort()
    found.calls_per_turn.sort()
    return found


def by_session(db: apsw.Connection, asked: Stats) -> Counted:
    for session, ones in groupby(turns(db, asked), key=lambda one: one.session):
        yield session, {PART: [*map(of_turn, ones)]}


def of_turn(one: Turn) -> list[int]:
    """Calls, responses, interruptions, denied calls, and searches among the calls."""
    searches = sum(is_search(call.kind, call.summary) for call in one.calls)
    return [len(one.calls), one.requests, one.interrupted, one.denied, searches]
