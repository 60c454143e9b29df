"""What was used, done and paid, summed by anything that people ask for.

Sums are made per quarter of an hour and session in SQL, and put together here: every zone of the
world is a whole number of quarters from UTC, so that a day is a day in any of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import chain

import apsw

from sess_schema.queries.fields import session_condition

QUARTER = 15 * 60 * 1000
GROUPS = (
    "day", "week", "month", "hour", "session", "project", "model", "agent", "tool", "branch",
    "file",
)  # fmt: skip
SUBAGENTS = ("include", "exclude", "only")
NONE = "none"  # the group of what belongs to none: responses are no tool's
_PERIODS = ("hour", "day", "week", "month")
_MODEL = "coalesce(u.model, 'unknown')"
_LOOSE = "e.label IS NOT 'answer' AND e.label IS NOT 'orphan'"


@dataclass(slots=True)
class Tally:
    """The sums of one group; integers are exact."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    cost_nano: int = 0
    unpriced: int = 0  # responses whose price is not known, in no sum of money
    requests: int = 0
    prompts: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    sessions: set[int] = field(default_factory=set)  # their roots

    def add(self, other: Tally) -> None:
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cache_write_tokens += other.cache_write_tokens
        self.cache_write_1h_tokens += other.cache_write_1h_tokens
        self.cache_read_tokens += other.cache_read_tokens
        self.cost_nano += other.cost_nano
        self.unpriced += other.unpriced
        self.requests += other.requests
        self.prompts += other.prompts
        self.tool_calls += other.tool_calls
        self.tool_errors += other.tool_errors
        self.sessions |= other.sessions

    @property
    def tokens(self) -> int:
        written = self.cache_write_tokens + self.cache_read_tokens
        return self.input_tokens + self.output_tokens + written


@dataclass(slots=True)
class Stats:
    """A question: which time, which sessions."""

    since: int | None = None
    until: int | None = None
    zone: tzinfo | None = None  # None is the system's
    agents: Sequence[str] = ()
    projects: Sequence[str] = ()
    models: Sequence[str] = ()
    branches: Sequence[str] = ()
    session: int | None = None  # with its subagents
    subagents: str = "include"

    def total(self, db: apsw.Connection) -> Tally:
        total = Tally()
        for tally in self.groups(db, "agent").values():
            total.add(tally)
        return total

    def groups(self, db: apsw.Connection, by: str) -> dict[str, Tally]:
        """The sums by group; they add up to the total, whatever the group."""
        reader = _Reader(db, self, by)
        found: dict[str, Tally] = {}
        label = reader.labels(by)
        for row in reader.rows():
            group = found.setdefault(label(row), Tally())
            group.add(row.tally)
        return dict(sorted(found.items()))

    def latencies(self, db: apsw.Connection) -> dict[str, list[int]]:
        """How long the calls of each tool took, sorted, in milliseconds."""
        found: dict[str, list[int]] = {}
        where, values = _Reader(db, self).condition("e.ts")
        for tool, taken in db.execute(
            "SELECT coalesce(e.tool, 'unknown'), e.duration_ms FROM events e"
            f" JOIN sessions s ON s.id = e.session_id WHERE {where} AND e.type = 'tool_use'"
            f" AND e.retired = 0 AND {_LOOSE} AND e.duration_ms IS NOT NULL"
            " AND e.status IS NOT 'denied' ORDER BY 1, 2",
            values,
        ):
            found.setdefault(tool, []).append(taken)
        return found

    def active_ms(self, db: apsw.Connection, idle: int = 5 * 60 * 1000) -> int:
        """The time between neighbouring events of a session, each gap cut at `idle`."""
        where, values = _Reader(db, self).condition("e.ts")
        found = db.execute(
            "SELECT sum(min(gap, ?)) FROM (SELECT e.ts - lag(e.ts) OVER"
            " (PARTITION BY e.session_id ORDER BY e.ts) AS gap FROM events e"
            f" JOIN sessions s ON s.id = e.session_id WHERE {where} AND e.ts IS NOT NULL"
            " AND e.retired = 0)",
            (idle, *values),
        ).get
        return int(found or 0)

    def unpriced_models(self, db: apsw.Connection) -> dict[str, int]:
        """Models without a price, with how many responses each."""
        where, values = _Reader(db, self).condition("u.ts")
        return dict(
            iter(
                db.execute(
                    "SELECT coalesce(u.model, 'unknown'), count(*) FROM usage u"
                    f" JOIN sessions s ON s.id = u.session_id WHERE {where} AND u.counted"
                    " AND u.cost_nano IS NULL GROUP BY 1 ORDER BY 2 DESC, 1",
                    values,
                )
            )
        )


def percentile(ordered: Sequence[int], percent: int) -> int | None:
    """Nearest rank."""
    if not ordered:
        return None
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


@dataclass(slots=True)
class _Row:
    """The sums of one quarter of an hour of one session."""

    quarter: int | None
    session: int
    model: str | None
    kind: str | None  # the tool or file, where that is asked for
    tally: Tally


@dataclass(slots=True, frozen=True)
class _Session:
    root: int
    native_id: str
    agent: str
    project: str
    branch: str


class _Reader:
    """Reads the rows that a question is about."""

    def __init__(self, db: apsw.Connection, asked: Stats, by: str = "") -> None:
        self._db = db
        self._asked = asked
        self._by = by
        self._sessions = _sessions(db)
        self._by_model = by == "model" or bool(asked.models)
        # The fewer the groups that SQL makes, the less is put together here.
        timed = by in _PERIODS or self._by_model
        self._quarter = f"ts / {QUARTER}" if timed else "NULL"
        self._models: dict[int, tuple[list[int], list[str]]] = {}

    def condition(self, ts: str) -> tuple[str, tuple[object, ...]]:
        """SQL over `sessions s` and a time."""
        asked = self._asked
        where, values = session_condition(asked.agents, asked.projects)
        if asked.branches:
            where += f" AND s.git_branch IN ({', '.join('?' * len(asked.branches))})"
            values += asked.branches
        if asked.session is not None:
            family = [key for key, one in self._sessions.items() if one.root == asked.session]
            where += f" AND s.id IN ({', '.join(map(str, {*family, asked.session}))})"
        if asked.subagents != "include":
            where += f" AND s.kind {'=' if asked.subagents == 'only' else '<>'} 'subagent'"
        if asked.since is not None:
            where += f" AND {ts} >= ?"
            values.append(asked.since)
        if asked.until is not None:
            where += f" AND {ts} < ?"
            values.append(asked.until)
        return where, tuple(values)

    def rows(self) -> Iterator[_Row]:
        models = tuple(self._asked.models)
        for row in chain(self._responses(), self._events()):
            if not models or (row.model or "").startswith(models):
                yield row

    def _responses(self) -> Iterator[_Row]:
        where, values = self.condition("u.ts")
        for quarter, session, model, *sums in self._db.execute(
            f"SELECT {self._quarter.replace('ts /', 'u.ts /')}, u.session_id,"
            f" {_MODEL if self._by_model else 'NULL'},"
            " sum(u.input_tokens), sum(u.output_tokens), sum(u.cache_write_tokens),"
            " sum(u.cache_write_1h_tokens), sum(u.cache_read_tokens),"
            " coalesce(sum(u.cost_nano), 0), sum(u.cost_nano IS NULL), count(*) FROM usage u"
            f" JOIN sessions s ON s.id = u.session_id WHERE {where} AND u.counted"
            " GROUP BY 1, 2, 3 ORDER BY 1",
            values,
        ):
            tally = Tally(*sums)
            tally.sessions.add(self._root(session))
            if self._by_model:
                times, models = self._models.setdefault(session, ([], []))
                times.append(quarter or 0)
                models.append(model)
            yield _Row(quarter, session, model, None, tally)

    def _events(self) -> Iterator[_Row]:
        where, values = self.condition("e.ts")
        kind = {
            "tool": "iif(e.type = 'tool_use', coalesce(e.tool, 'unknown'), NULL)",
            "file": "(SELECT min(f.path) FROM files f WHERE f.event_id = e.id)",
        }.get(self._by, "NULL")
        for quarter, session, what, *sums in self._db.execute(
            f"SELECT {self._quarter.replace('ts /', 'e.ts /')}, e.session_id, {kind},"
            " sum(e.type = 'user'),"
            " sum(e.type = 'tool_use'), sum(e.type = 'tool_use' AND e.status = 'error')"
            f" FROM events e JOIN sessions s ON s.id = e.session_id WHERE {where}"
            f" AND e.type IN ('user', 'tool_use') AND {_LOOSE} AND e.retired = 0"
            " GROUP BY 1, 2, 3",
            values,
        ):
            tally = Tally(prompts=sums[0], tool_calls=sums[1], tool_errors=sums[2])
            if sums[0]:
                tally.sessions.add(self._root(session))
            yield _Row(quarter, session, self._model_at(session, quarter), what, tally)

    def _root(self, session: int) -> int:
        return self._sessions[session].root

    def _model_at(self, session: int, quarter: int | None) -> str | None:
        """The model that a session was using: what it did is laid to the last that answered."""
        times, models = self._models.get(session, ([], []))
        if not models:
            return None
        return models[max(0, bisect_right(times, quarter or 0) - 1)]

    def labels(self, by: str) -> Callable[[_Row], str]:
        told = self._sessions
        if by in _PERIODS:
            return lambda row: _period(by, row.quarter, self._asked.zone)
        if by in ("tool", "file"):
            return lambda row: row.kind or NONE
        if by == "model":
            return lambda row: row.model or NONE
        if by == "session":
            return lambda row: told[told[row.session].root].native_id
        if by == "agent":
            return lambda row: told[row.session].agent
        if by == "project":
            return lambda row: told[told[row.session].root].project or told[row.session].project
        return lambda row: told[row.session].branch


def _sessions(db: apsw.Connection) -> dict[int, _Session]:
    rows = {
        key: (parent, native_id, agent, project or NONE, branch or NONE)
        for key, parent, native_id, agent, project, branch in db.execute(
            "SELECT id, parent_id, native_id, agent, project, git_branch FROM sessions"
        )
    }
    found = {}
    for key, (_, *told) in rows.items():
        root, seen = key, {key}
        while (above := rows[root][0]) in rows and above not in seen:
            root = above
            seen.add(root)
        found[key] = _Session(root, *told)
    return found


@cache
def _period(by: str, quarter: int | None, zone: tzinfo | None) -> str:
    if quarter is None:
        return "undated"
    moment = datetime.fromtimestamp(quarter * QUARTER / 1000, UTC).astimezone(zone)
    if by == "hour":
        return f"{moment:%Y-%m-%d %H:00%z}"
    if by == "month":
        return f"{moment:%Y-%m}"
    if by == "week":  # begins on Monday
        moment -= timedelta(days=moment.weekday())
    return f"{moment:%Y-%m-%d}"
