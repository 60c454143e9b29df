"""How often each tool was called, how often it failed, and how long it took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import apsw

from sess_schema import kinds
from sess_schema.classes import dataclass, field
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import scope
from sess_schema.queries.views.programs import mcp, program

# By tool and status, how long each call took: one lookup per call, of very many.
Ended = defaultdict[tuple[str, str | None], list[int | None]]


@dataclass(slots=True)
class Use:
    """The calls of one tool, server or program."""

    calls: int = 0
    errors: int = 0
    denied: int = 0  # refused by the user: not a failure of the tool
    orphans: int = 0  # without a recorded result
    times: list[int] = field(default_factory=list)  # milliseconds, sorted when read

    @property
    def answered(self) -> int:
        return self.calls - self.denied - self.orphans

    @property
    def error_rate(self) -> float | None:
        return self.errors / self.answered if self.answered else None

    def add(self, status: str | None, taken: Sequence[int | None]) -> None:
        """Add calls with the same status, and how long each took, where known."""
        self.calls += len(taken)
        if status == "error":
            self.errors += len(taken)
        elif status == "denied":
            self.denied += len(taken)
            return  # the time was spent by a person
        elif status is None or status == "pending":
            self.orphans += len(taken)
        self.times += [one for one in taken if one is not None]

    def mark(self, percent: int) -> int | None:
        return percentile(self.times, percent)


@dataclass(slots=True)
class Uses:
    tools: dict[str, Use] = field(default_factory=dict)
    servers: dict[str, Use] = field(default_factory=dict)  # of MCP
    programs: dict[str, Use] = field(default_factory=dict)  # run by shells, if requested

    def add(self, ended: Ended) -> None:
        """Empties `ended` to free memory, because there may be very many."""
        while ended:
            (tool, status), taken = ended.popitem()
            self.tools.setdefault(tool, Use()).add(status, taken)
            if (names := mcp(tool)) is not None:
                self.servers.setdefault(names[0], Use()).add(status, taken)

    def sorted(self) -> Uses:
        """Sort the times of each, as percentiles require."""
        for uses in (self.tools, self.servers, self.programs):
            for use in uses.values():
                use.times.sort()
        return self


def read(db: apsw.Connection, asked: Stats, *, programs: bool = False) -> Uses:
    """The calls in the window; results may have come later."""
    found = Uses()
    wanted = scope.calls(db, asked)
    ended: Ended = defaultdict(list)
    for tool, status, taken in db.execute(
        f"SELECT coalesce(e.tool, 'unknown'), e.status, e.duration_ms {wanted.sql}", wanted.values
    ):
        ended[tool, status].append(taken)
    found.add(ended)
    if programs:
        for summary, status, taken in db.execute(
            f"SELECT e.summary, e.status, e.duration_ms {wanted.sql} AND e.kind = '{kinds.SHELL}'",
            wanted.values,
        ):
            found.programs.setdefault(program(summary), Use()).add(status, [taken])
    return found.sorted()
