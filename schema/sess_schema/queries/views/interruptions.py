"""How often people interrupt, and how many steps a turn takes."""

from __future__ import annotations

import apsw

from sess_schema.classes import dataclass, field
from sess_schema.queries.stats import Stats
from sess_schema.queries.views.programs import is_search
from sess_schema.queries.views.turns import turns

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
    for one in turns(db, asked):
        stopped = bool(one.interrupted or one.denied)
        found.turns += 1
        found.interrupted_turns += stopped
        found.markers += one.interrupted
        found.refusals += one.denied
        found.requests_per_turn.append(one.requests)
        found.calls_per_turn.append(len(one.calls))
        sized = found.by_calls[max(step for step in STEPS if step <= len(one.calls))]
        sized.turns += 1
        sized.interrupted += stopped
        found.calls += len(one.calls)
        found.searches += sum(is_search(call.kind, call.summary) for call in one.calls)
    found.requests_per_turn.sort()
    found.calls_per_turn.sort()
    return found
