"""How often each tool was called, how often it failed, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass, field

import apsw

from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import kinds, scope


@dataclass(slots=True)
class Use:
    """The calls of one tool, server or program."""

    calls: int = 0
    errors: int = 0
    denied: int = 0  # refused by the person: no failure of the tool
    orphans: int = 0  # no result was ever written
    times: list[int] = field(default_factory=list)  # milliseconds, sorted when read

    @property
    def answered(self) -> int:
        return self.calls - self.denied - self.orphans

    @property
    def error_rate(self) -> float | None:
        return self.errors / self.answered if self.answered else None

    def add(self, status: str | None, taken: int | None) -> None:
        self.calls += 1
        if status == "error":
            self.errors += 1
        elif status == "denied":
            self.denied += 1
        elif status is None or status == "pending":
            self.orphans += 1
        if taken is not None and status != "denied":
            self.times.append(taken)

    def mark(self, percent: int) -> int | None:
        return percentile(self.times, percent)


@dataclass(slots=True)
class Uses:
    tools: dict[str, Use] = field(default_factory=dict)
    servers: dict[str, Use] = field(default_factory=dict)  # of MCP
    programs: dict[str, Use] = field(default_factory=dict)  # that shells ran, where asked for

    def add(self, tool: str, status: str | None, taken: int | None) -> None:
        if (use := self.tools.get(tool)) is None:
            use = self.tools[tool] = Use()
        use.add(status, taken)
        if tool.startswith("mcp__") and (parts := kinds.mcp(tool)) is not None:
            self.servers.setdefault(parts[0], Use()).add(status, taken)

    def sorted(self) -> Uses:
        """With the times of each in order, which percentiles need."""
        for uses in (self.tools, self.servers, self.programs):
            for use in uses.values():
                use.times.sort()
        return self


def read(db: apsw.Connection, asked: Stats, *, programs: bool = False) -> Uses:
    """The calls in the window; results may have come later."""
    found = Uses()
    wanted = scope.calls(db, asked)
    for tool, status, taken in db.execute(
        f"SELECT coalesce(e.tool, 'unknown'), e.status, e.duration_ms {wanted.sql}", wanted.values
    ):
        found.add(tool, status, taken)
    if programs:
        shells = [tool for tool in found.tools if kinds.is_shell(tool)]
        marks = ", ".join("?" * len(shells))
        for summary, status, taken in db.execute(
            f"SELECT e.summary, e.status, e.duration_ms {wanted.sql} AND e.tool IN ({marks})",
            (*wanted.values, *shells),
        ):
            found.programs.setdefault(kinds.program(summary), Use()).add(status, taken)
    return found.sorted()
