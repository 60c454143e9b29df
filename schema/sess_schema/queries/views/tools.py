"""How often each tool was called, how often it failed, and how long it took."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import apsw

from sess_schema import kinds
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import parts, scope
from sess_schema.queries.views.parts import Counted, Packed
from sess_schema.queries.views.programs import mcp, program

CALLS = "calls"


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

    def add(self, status: str | None, calls: int) -> bool:
        """Add calls with the same status; whether it counts how long they took."""
        self.calls += calls
        if status == "error":
            self.errors += calls
        elif status == "denied":
            self.denied += calls
            return False  # the time was spent by a person
        elif status is None or status == "pending":
            self.orphans += calls
        return True

    def include(self, other: Use) -> None:
        self.add_counts(other)
        self.times += other.times

    def add_counts(self, other: Use) -> None:
        self.calls += other.calls
        self.errors += other.errors
        self.denied += other.denied
        self.orphans += other.orphans

    def mark(self, percent: int) -> int | None:
        return percentile(self.times, percent)


@dataclass(slots=True)
class Uses:
    tools: dict[str, Use] = field(default_factory=dict)
    servers: dict[str, Use] = field(default_factory=dict)  # of MCP
    programs: dict[str, Use] = field(default_factory=dict)  # run by shells, if requested

    def complete(self) -> Uses:
        """Add up the tools of each server, and sort times, as percentiles require."""
        for tool, use in self.tools.items():
            if (names := mcp(tool)) is not None:
                self.servers.setdefault(names[0], Use()).include(use)
        for uses in (self.tools, self.servers, self.programs):
            for use in uses.values():
                use.times.sort()
        return self


def read(db: apsw.Connection, asked: Stats, *, programs: bool = False) -> Uses:
    """The calls in the window; results may have come later."""
    found = Uses()
    times: defaultdict[str, list[Packed]] = defaultdict(list)
    for _, ended in parts.of(db, asked, CALLS, by_session):
        for tool, status, calls, taken in ended:
            use = found.tools.get(tool)
            if use is None:
                use = found.tools[tool] = Use()
            if use.add(status, calls):
                times[tool].append(taken)
    for tool, each in times.items():
        found.tools[tool].times = parts.unpacked(each)
    if programs:
        wanted = scope.calls(db, asked)
        for summary, status, took in db.execute(
            f"SELECT e.summary, e.status, e.duration_ms {wanted.sql} AND e.kind = '{kinds.SHELL}'",
            wanted.values,
        ):
            use = found.programs.setdefault(program(summary), Use())
            if use.add(status, 1) and took is not None:
                use.times.append(took)
    return found.complete()


def by_session(db: apsw.Connection, asked: Stats) -> Counted:
    """Of each tool and status: number of calls, and how long each took, where known."""
    found: defaultdict[int, defaultdict[tuple[str, str | None], list[int | None]]]
    found = defaultdict(lambda: defaultdict(list))
    wanted = scope.calls(db, asked)
    for session, tool, status, taken in db.execute(
        f"SELECT s.id, coalesce(e.tool, 'unknown'), e.status, e.duration_ms {wanted.sql}",
        wanted.values,
    ):
        found[session][tool, status].append(taken)
    for session, ended in found.items():
        calls = [
            [tool, status, len(taken), parts.packed([one for one in taken if one is not None])]
            for (tool, status), taken in ended.items()
        ]
        yield session, {CALLS: sorted(calls, key=lambda one: (one[0], one[1] or ""))}
