"""What calls run, how they ended and how long they took; how long people waited for a model."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

import apsw

from sess_common.classes import later
from sess_schema import kinds, labels
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import parts, scope
from sess_schema.sums import CALLED, MODEL

_SEARCH_PROGRAMS = frozenset({
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "find", "fd", "fdfind", "ls", "tree",
    "locate",
})  # fmt: skip
# Words that may precede the actual program.
_BEFORE = frozenset({
    "sudo", "env", "time", "nohup", "command", "exec", "builtin", "then", "do", "if", "while", "!",
    "{", "(",
})  # fmt: skip
_PREPARING = frozenset({"cd", "pushd", "source", ".", "set", "export"})
_NOT_ALONE = _BEFORE | _PREPARING
_BETWEEN = frozenset({"&&", "||", ";", "&", "|"})
_ASSIGNMENT = later(r"[A-Za-z_]\w*=")
_WORD = later(r"""(?:[^\s;&|'"]|'[^']*'|"[^"]*")+|&&|\|\||[;&|]""")
_MCP = later(r"mcp__(.+?)__(.+)")
CALLS = "calls"
LATENCY_PART = "latency"
# The order of marks at the same moment: no answer is instant.
_TOLD, _ASKED = 0, 1


def is_search(kind: str | None, summary: str | None) -> bool:
    """A search tool, or a shell command that runs a search program."""
    return kind == kinds.SEARCH or (kind == kinds.SHELL and program_of(summary) in _SEARCH_PROGRAMS)


def program_of(command: str | None) -> str:
    """The first program of a command line, skipping `cd`, `sudo` and assignments."""
    first = (command or "")[:1000].split(None, 1)
    if first and first[0].isalnum() and first[0] not in _NOT_ALONE:
        return first[0]
    words = (match[0] for match in _WORD.finditer((command or "")[:1000]))
    name = ""
    for word in words:
        if word in _BETWEEN or word in _BEFORE or _ASSIGNMENT.match(word):
            continue
        name = word.lstrip("({").strip("'\"").rsplit("/", 1)[-1] or word
        if name not in _PREPARING:
            return name
        next((word for word in words if word in ("&&", "||", ";", "&")), None)
    return name or "unknown"


def mcp_names(tool: str) -> tuple[str, str] | None:
    """Server and tool of `mcp__server__tool`."""
    names = _MCP.fullmatch(tool)
    return (names[1], names[2]) if names else None


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
            if (names := mcp_names(tool)) is not None:
                server = self.servers.setdefault(names[0], Use())
                server.add_counts(use)
                server.times += use.times
        for uses in (self.tools, self.servers, self.programs):
            for use in uses.values():
                use.times.sort()
        return self


def read_tools(db: apsw.Connection, asked: Stats, *, programs: bool = False) -> Uses:
    """The calls in the window; results may have come later."""
    uses = Uses()
    times: defaultdict[str, list[parts.Packed]] = defaultdict(list)
    for _, ended in parts.of(db, asked, CALLS, calls_by_session):
        for tool, status, calls, taken in ended:
            if uses.tools.setdefault(tool, Use()).add(status, calls):
                times[tool].append(taken)
    for tool, each in times.items():
        uses.tools[tool].times = parts.unpacked(each)
    if programs:
        wanted = scope.calls(db, asked)
        for summary, status, took in db.execute(
            f"SELECT e.summary, e.status, e.duration_ms {wanted.sql} AND e.kind = '{kinds.SHELL}'",
            wanted.values,
        ):
            use = uses.programs.setdefault(program_of(summary), Use())
            if use.add(status, 1) and took is not None:
                use.times.append(took)
    return uses.complete()


def calls_by_session(db: apsw.Connection, asked: Stats) -> parts.Counted:
    """Of each tool and status: number of calls, and how long each took, where known."""
    ended: defaultdict[int, defaultdict[tuple[str, str | None], list[int | None]]]
    ended = defaultdict(lambda: defaultdict(list))
    wanted = scope.calls(db, asked)
    for session, tool, status, taken in db.execute(
        f"SELECT s.id, coalesce(e.tool, 'unknown'), e.status, e.duration_ms {wanted.sql}",
        wanted.values,
    ):
        ended[session][tool, status].append(taken)
    for session, by_end in ended.items():
        calls = [
            [tool, status, len(spans), parts.packed([span for span in spans if span is not None])]
            for (tool, status), spans in by_end.items()
        ]
        yield session, {CALLS: sorted(calls, key=lambda call: (call[0], call[1] or ""))}


Answer = tuple[int, str, int | None]  # time, model, tokens if the count is final


@dataclass(slots=True)
class Speed:
    """The responses of one model."""

    waits: list[int] = field(default_factory=list)  # milliseconds to the first line, sorted
    rates: list[int] = field(default_factory=list)  # output tokens in 1,000 seconds, sorted
    output_tokens: int = 0  # of responses whose time is known
    taken: int = 0  # by those, in milliseconds

    @property
    def tokens_per_second(self) -> float | None:
        return 1000 * self.output_tokens / self.taken if self.taken else None


def read_speeds(db: apsw.Connection, asked: Stats) -> dict[str, Speed]:
    """By model, from a prompt or the last tool result to the first line of the answer."""
    speeds: defaultdict[str, Speed] = defaultdict(Speed)
    times: defaultdict[str, tuple[list[parts.Packed], list[parts.Packed]]] = defaultdict(
        lambda: ([], [])
    )
    for _, each in parts.of(db, asked, LATENCY_PART, speeds_by_session):
        for model, waits, rates, tokens, taken in each:
            times[model][0].append(waits)
            times[model][1].append(rates)
            speeds[model].output_tokens += tokens
            speeds[model].taken += taken
    for model, lists in times.items():
        speeds[model].waits, speeds[model].rates = map(parts.unpacked, lists)
    return dict(sorted(speeds.items(), key=lambda named: (-len(named[1].waits), named[0])))


def speeds_by_session(db: apsw.Connection, asked: Stats) -> parts.Counted:
    """Of each model: what `Speed` has."""
    wanted = scope.events(db, asked)  # first: it may need a function that no statement uses
    answers = _answers(db, asked)
    answered = next(answers, None)
    for session, marks in _marks(db, wanted):
        speeds: defaultdict[str, Speed] = defaultdict(Speed)
        while answered is not None and answered[0] < session:
            answered = next(answers, None)
        rows = answered[1] if answered is not None and answered[0] == session else []
        times = [row[0] for row in rows]
        # When the model was asked, and when its first line came.
        begun: list[int] = []
        since: int | None = None
        for mark in marks:
            ts = mark >> 1
            if mark & 1 == _ASKED:
                since = ts
            elif since is not None:
                at = min(bisect_left(times, ts), len(rows) - 1)
                if rows:
                    speeds[rows[at][1]].waits.append(ts - since)
                begun.append(since)
                since = None
        _add_rates(speeds, rows, begun)
        each = [
            [
                model,
                *map(parts.packed, (speed.waits, speed.rates)),
                speed.output_tokens,
                speed.taken,
            ]
            for model, speed in sorted(speeds.items())
        ]
        if each:
            yield session, {LATENCY_PART: each}


def _add_rates(speeds: defaultdict[str, Speed], rows: list[Answer], begun: list[int]) -> None:
    """Add each complete answer that was the first after the model was asked."""
    used = -1
    for ts, model, tokens in rows:
        at = bisect_left(begun, ts) - 1
        if at <= used:
            continue
        used = at
        if tokens is None:
            continue
        speed = speeds[model]
        speed.output_tokens += tokens
        speed.taken += ts - begun[at]
        speed.rates.append(tokens * 1_000_000 // (ts - begun[at]))


def _answers(db: apsw.Connection, asked: Stats) -> Iterator[tuple[int, list[Answer]]]:
    """By session, in order of their keys."""
    wanted = scope.responses(db, asked)
    rows = db.execute(
        f"SELECT u.session_id, u.ts, {MODEL}, iif(u.stop_reason IS NULL, NULL, u.output_tokens)"
        f" {wanted.sql} AND u.ts IS NOT NULL ORDER BY u.session_id, u.ts",
        wanted.values,
    )
    for session, group in groupby(rows, key=lambda row: int(row[0])):
        yield session, [(ts, model, tokens) for _, ts, model, tokens in group]


def _marks(db: apsw.Connection, wanted: scope.Scope) -> Iterator[tuple[int, list[int]]]:
    """By session, when the model was asked and when it wrote something, in order.

    A mark is twice its time, plus what it is: numbers are sorted faster than pairs.
    """
    current: int | None = None
    marks: list[int] = []
    for session, mark, answered in db.execute(
        f"SELECT s.id, 2 * e.ts + iif(e.type = 'user', {_ASKED}, {_TOLD}),"
        f" 2 * e.answered + {_ASKED} {wanted.sql} AND {CALLED} AND e.ts IS NOT NULL"
        " AND e.type IN ('user', 'assistant', 'thinking', 'tool_use')"
        f" AND e.label IS NOT '{labels.API_ERROR}' ORDER BY s.id",
        wanted.values,
    ):
        if session != current:
            if current is not None:
                yield current, sorted(marks)
            current, marks = session, []
        marks.append(mark)
        if answered is not None:
            marks.append(answered)
    if current is not None:
        yield current, sorted(marks)
