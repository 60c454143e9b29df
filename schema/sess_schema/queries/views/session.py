"""One session in numbers, its subagents included."""

from __future__ import annotations

from dataclasses import dataclass, field

import apsw

from sess_schema.queries.stats import Stats
from sess_schema.queries.tally import Tally
from sess_schema.queries.views import scope
from sess_schema.queries.views.tools import Use
from sess_schema.queries.views.tools import read as read_tools

_CHARS_PER_TOKEN = 4


@dataclass(slots=True, frozen=True)
class SlowCall:
    event: int
    session: str
    tool: str
    summary: str
    taken: int


@dataclass(slots=True)
class Analytics:
    """Times in milliseconds."""

    first: int | None = None
    last: int | None = None
    events: int = 0
    prompts: int = 0
    tools: dict[str, Use] = field(default_factory=dict)
    estimated_input: int = 0  # tokens, at four characters each
    estimated_output: int = 0
    models: dict[str, Tally] = field(default_factory=dict)
    slowest: list[SlowCall] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # changes of each, the most first
    commits: list[tuple[str, str]] = field(default_factory=list)  # sha, subject

    @property
    def duration(self) -> int:
        return 0 if self.first is None or self.last is None else self.last - self.first

    @property
    def active(self) -> int:
        """The time that tools took."""
        return sum(sum(use.times) for use in self.tools.values())

    @property
    def calls(self) -> int:
        return sum(use.calls for use in self.tools.values())

    @property
    def errors(self) -> int:
        return sum(use.errors for use in self.tools.values())

    @property
    def success_rate(self) -> float:
        return (self.calls - self.errors) / self.calls if self.calls else 0.0

    @property
    def recorded(self) -> bool:
        return any(tally.requests for tally in self.models.values())


def read(db: apsw.Connection, asked: Stats, *, slowest: int = 5) -> Analytics:
    """`asked.session` says of which."""
    found = Analytics(tools=read_tools(db, asked).tools)
    told = scope.events(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    each = f"length(x.{{}}) / {_CHARS_PER_TOKEN}"
    text, given, got = (each.format(name) for name in ("text", "input", "output"))
    (
        found.first,
        found.last,
        found.events,
        found.prompts,
        found.estimated_input,
        found.estimated_output,
    ) = db.execute(
        "SELECT min(e.ts), max(e.ts), count(*), coalesce(sum(e.type = 'user'), 0),"
        f" coalesce(sum(iif(e.type = 'user', {text}, 0) + {given}), 0),"
        f" coalesce(sum(iif(e.type IN ('assistant', 'thinking'), {text}, 0) + {got}), 0)"
        f" {told.sql}",
        told.values,
    ).fetchone() or (None, None, 0, 0, 0, 0)
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
