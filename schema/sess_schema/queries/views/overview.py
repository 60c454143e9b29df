"""Numbers at a glance: of all sessions, of one session, and of every day and hour."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import apsw

from sess_common import times
from sess_schema import numbers, sums
from sess_schema.ids import EventId
from sess_schema.numbers import Numbers
from sess_schema.queries.quarters import Reader
from sess_schema.queries.sessions import SessionRow
from sess_schema.queries.stats import Stats, Worktime
from sess_schema.queries.views import failures, scope, tools
from sess_schema.queries.views.tools import Use, Uses, read_tools
from sess_schema.sums import CHARS_PER_TOKEN, COUNTS, Sum, Tally

_COST = COUNTS.index("cost_nano")
_SLOWEST = 5  # calls of a session
PRICES = "prices"  # the fact that has the day of each model's price, and of all others
_OLD = 183 * times.DAY  # half a year
SUBSCRIPTIONS = "subscriptions"  # the fact that names agents which nobody pays by token
UNDATED = "undated"


@dataclass(slots=True)
class Overview:
    total: Tally = field(default_factory=Tally)
    time: Worktime = field(default_factory=Worktime)
    estimated_tokens: int = 0  # output where none was recorded; no other sum includes it
    days: dict[str, Tally] = field(default_factory=dict)
    models: dict[str, Tally] = field(default_factory=dict)
    projects: dict[str, Tally] = field(default_factory=dict)
    uses: Uses = field(default_factory=Uses)
    classes: dict[str, int] = field(default_factory=dict)  # of failed calls, most frequent first
    refused: int = 0  # API errors
    subscriptions: list[str] = field(default_factory=list)  # agents whose cost nobody was billed
    outdated: dict[str, str] = field(default_factory=dict)  # by model: the day of its old price


def read_overview(db: apsw.Connection, asked: Stats, config: Path) -> Overview:
    groups = ("day", "model", "project")
    reader = Reader(db, asked, groups)
    overview = Overview(time=numbers.worktime_of(db, asked, reader))
    labels = [asked.label(reader, by) for by in groups]
    sums: list[defaultdict[str, Sum]] = [defaultdict(Sum) for _ in groups]
    charged = set[str]()
    # First by all three, as most rows share these with others.
    together: defaultdict[tuple[str, ...], Sum] = defaultdict(Sum)
    days, models, projects = dict[int, str](), dict[str | None, str](), dict[int, str]()
    for row in reader.rows():
        at, session, model, _, counts, root = row
        if at not in days:
            days[at] = labels[0](row)
        if model not in models:
            models[model] = labels[1](row)
        if session not in projects:
            projects[session] = labels[2](row)
        together[days[at], models[model], projects[session]].add(counts, root)
        if counts[_COST]:
            charged.add(reader.sessions[session].agent)
    for names, summed in together.items():
        for group, name in zip(sums, names, strict=True):
            group[name].include(summed)
    overview.days, overview.models, overview.projects = (
        {name: summed.tally(reader.listed) for name, summed in group.items()} for group in sums
    )
    for tally in overview.days.values():
        overview.total.add(tally)
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (SUBSCRIPTIONS,)).get
    titles = json.loads(stored or "{}")
    overview.subscriptions = sorted(titles[agent] for agent in charged if agent in titles)
    overview.outdated = _outdated(db, overview.models)
    unrecorded = reader.unrecorded_chars() + overview.total.placeholder_chars
    overview.estimated_tokens = unrecorded // CHARS_PER_TOKEN
    overview.uses = tools.read_tools(db, asked)
    overview.classes, overview.refused = failures.counts(db, asked, config)
    return overview


def _outdated(db: apsw.Connection, models: dict[str, Tally]) -> dict[str, str]:
    """Models whose price was last listed long ago, and when; one's own prices have no date."""
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (PRICES,)).get
    dates = json.loads(stored or "{}")
    oldest = str(times.iso(times.now_ms() - _OLD))
    listed = {
        name: dates.get(name.rpartition("/")[2], dates.get("", ""))
        for name in sorted(models)
        if models[name].cost_nano
    }
    return {name: day for name, day in listed.items() if day and day < oldest}


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
        """Of the calls that nobody refused; where there are none, nothing succeeded."""
        calls = self.numbers.calls - self.numbers.denied
        return (calls - self.numbers.failed) / calls if calls else 0.0

    @property
    def recorded(self) -> bool:
        return any(tally.requests for tally in self.models.values())


def read_session(db: apsw.Connection, asked: Stats, row: SessionRow) -> Analytics:
    """`asked.session` is the row's; `asked` may have a window."""
    analytics = Analytics(numbers.of(db, row, asked), tools=read_tools(db, asked).tools)
    wanted = scope.events(db, asked, joins="JOIN event_texts x ON x.id = e.id")
    each = f"length(x.{{}}) / {sums.CHARS_PER_TOKEN}"
    text, arguments, output = (each.format(name) for name in ("text", "input", "output"))
    analytics.estimated_input, analytics.estimated_output = db.execute(
        f"SELECT coalesce(sum(iif(e.type = 'user', {text}, 0) + {output}), 0),"
        f" coalesce(sum(iif(e.type IN ('assistant', 'thinking'), {text}, 0) + {arguments}), 0)"
        f" {wanted.sql}",
        wanted.values,
    ).fetchone() or (0, 0)
    models = asked.groups(db, "model")
    analytics.models = dict(
        sorted(models.items(), key=lambda named: (-named[1].cost_nano, named[0]))
    )
    calls = scope.calls(db, asked)
    analytics.slowest = [
        SlowCall(*row)
        for row in db.execute(
            "SELECT e.id, s.native_id, coalesce(e.tool, 'unknown'), coalesce(e.summary, ''),"
            f" e.duration_ms {calls.sql} AND e.duration_ms > 0 AND e.status IS NOT 'denied'"
            " ORDER BY e.duration_ms DESC, e.id LIMIT ?",
            (*calls.values, _SLOWEST),
        )
    ]
    changed = scope.calls(db, asked, joins="JOIN files f ON f.event_id = e.id")
    analytics.files = dict(
        iter(
            db.execute(
                f"SELECT f.path, count(DISTINCT e.id) {changed.sql} AND e.status = 'ok'"
                " AND f.action IN ('edit', 'write') GROUP BY 1 ORDER BY 2 DESC, 1",
                changed.values,
            )
        )
    )
    commits = scope.events(db, asked, joins="JOIN commits c ON c.event_id = e.id")
    analytics.commits = [
        *db.execute(f"SELECT c.sha, c.subject {commits.sql} ORDER BY e.ts, e.id", commits.values)
    ]
    return analytics


@dataclass(slots=True)
class Calendar:
    days: dict[date, Tally] = field(default_factory=dict)  # with a prompt or a response, in order
    hours: dict[tuple[int, int], Tally] = field(default_factory=dict)  # (weekday, hour)


def read_calendar(db: apsw.Connection, asked: Stats) -> Calendar:
    """By the time of events, not of sessions."""
    calendar = Calendar()
    for label, tally in asked.groups(db, "hour").items():
        if label == UNDATED or not (tally.prompts or tally.requests):
            continue
        day, hour = date.fromisoformat(label[:10]), int(label[11:13])
        calendar.days.setdefault(day, Tally()).add(tally)
        calendar.hours.setdefault((day.weekday(), hour), Tally()).add(tally)
    calendar.days = dict(sorted(calendar.days.items()))
    return calendar


def busy(tally: Tally) -> int:
    """The count that every calendar shows: prompts and responses."""
    return tally.prompts + tally.requests


def streaks(days: Iterable[date], today: date) -> tuple[int, int]:
    """The current one, even if today has no activity yet, and the longest."""
    longest = length = 0
    before: date | None = None
    for day in sorted(days):
        length = length + 1 if before is not None and day - before == timedelta(days=1) else 1
        longest = max(longest, length)
        before = day
    still = before is not None and timedelta(0) <= today - before <= timedelta(days=1)
    return (length if still else 0), longest
