"""The numbers of one session, including its subagents."""

from __future__ import annotations

from dataclasses import dataclass, field

import apsw

from sess_schema import numbers, sums
from sess_schema.ids import EventId
from sess_schema.numbers import Numbers
from sess_schema.queries.sessions import SessionRow
from sess_schema.queries.stats import Stats
from sess_schema.queries.tally import Tally
from sess_schema.queries.views import scope
from sess_schema.queries.views.tools import Use
from sess_schema.queries.views.tools import read as read_tools


@dataclass(slots=True, frozen=True)
class SlowCall:
    event: EventId
    session: str
    tool: str
    summary: str
    taken: int


@dataclass(slots=True)
class Analytics:
    """Times in milliseconds."""

    numbers: Numbers
    tools: dict[str, Use] = field(default_factory=dict)
    estimated_input: int = 0  # tokens the model read, at four characters each
    estimated_output: int = 0  # tokens it wrote
    models: dict[str, Tally] = field(default_factory=dict)
    slowest: list[SlowCall] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # changes per file, the most first
    commits: list[tuple[str, str]] = field(default_factory=list)  # sha, subject

    @property
    def tool_ms(self) -> int:
        """The time calls took; parallel calls are added up."""
        return sum(sum(use.times) for use in self.tools.values())

    @property
    def success_rate(self) -> float:
        calls = self.numbers.calls
        return (calls - self.numbers.failed) / calls if calls else 0.0

    @property
    def recorded(self) -> bool:
        return any(tally.requests for tally in self.models.values())


def read(db: apsw.Connection, asked: Stats, row: SessionRow, *, slowest: int = 5) -> Analytics:
    """`asked.session` is the row's; `asked` may have a window."""
    found = Analytics(numbers.of(db, row, asked), tools=read_tools(db, asked).tools)
    wanted = scope.events(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    each = f"length(x.{{}}) / {sums.CHARS_PER_TOKEN}"
    text, given, got = (each.format(name) for name in ("text", "input", "output"))
    found.estimated_input, found.estimated_output = db.execute(
        f"SELECT coalesce(sum(iif(e.type = 'user', {text}, 0) + {got}), 0),"
        f" coalesce(sum(iif(e.type IN ('assistant', 'thinking'), {text}, 0) + {given}), 0)"
        f" {wanted.sql}",
        wanted.values,
    ).fetchone() or (0, 0)
    models = asked.groups(db, "model")
    found.models = dict(sorted(models.items(), key=lambda one: (-one[1].cost_nano, one[0])))
    calls = scope.calls(db, asked)
    found.slowest = [
        SlowCall(*row)
        for row in db.execute(
            "SELECT e.id, s.native_id, coalesce(e.tool, 'unknown'), coalesce(e.summary, ''),"
            f" e.duration_ms {calls.sql} AND e.duration_ms > 0 AND e.status IS NOT 'denied'"
            " ORDER BY e.duration_ms DESC, e.id LIMIT ?",
            (*calls.values, slowest),
        )
    ]
    changed = scope.calls(db, asked, joins="JOIN files f ON f.event_id = e.id")
    found.files = dict(
        iter(
            db.execute(
                f"SELECT f.path, count(DISTINCT e.id) {changed.sql} AND e.status = 'ok'"
                " AND f.action IN ('edit', 'write') GROUP BY 1 ORDER BY 2 DESC, 1",
                changed.values,
            )
        )
    )
    commits = scope.events(db, asked, joins="JOIN commits c ON c.event_id = e.id")
    found.commits = [
        *db.execute(f"SELECT c.sha, c.subject {commits.sql} ORDER BY e.ts, e.id", commits.values)
    ]
    return found
