"""Estimated five-hour windows, as ccusage draws them, and budgets.

A window starts at the full hour (UTC) of its first response and lasts five hours. A response more
than five hours after that start, or after the previous response, starts another one. Services may
reset at other times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby, pairwise
from operator import add, itemgetter
from typing import Any, NamedTuple

import apsw

from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass, field, later, replace
from sess_common.errors import SessError
from sess_schema import labels
from sess_schema.sums import MODEL, Tally

if TYPE_CHECKING:
    from sess_schema.queries.stats import Stats
    from sess_schema.queries.views.parts import Counted


HOURS_PART = "hours"
LENGTH = 5 * times.HOUR
_RESET = later(r"limit reached\|(\d{10})\b")
_GIVEN = later(r"(\$)?(\d+(?:\.\d+)?)([kmb])?(?:/(day|week|month))?", re.IGNORECASE)
_UNITS = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_MEAN_DAYS = 7
_USUAL_CONTEXT, _LARGE_CONTEXT = 200_000, 1_000_000
# By a part of the model's name; the first match wins.
_CONTEXTS = {
    **dict.fromkeys(("[1m]", "-1m", "gemini", "gpt-4.1"), _LARGE_CONTEXT),
    "gpt-5": 400_000,
    "gpt-4o": 128_000,
}


class Bucket(NamedTuple):
    """The responses of one model after a full hour, up to and including the next one.

    An hour thus never spans two windows, so buckets give the same windows as single responses.
    """

    first: int
    last: int
    model: str
    tally: Tally


@dataclass(slots=True)
class Window(Tally):
    start: int = 0
    first: int = 0
    last: int = 0
    models: set[str] = field(default_factory=set)

    @property
    def end(self) -> int:
        return self.start + LENGTH

    def active(self, now: int) -> bool:
        return now < self.end and now - self.last < LENGTH

    def per_minute(self, amount: int) -> float | None:
        """Of tokens or nano-dollars, between the first and the last response."""
        taken = self.last - self.first
        return amount * times.MINUTE / taken if taken > 0 else None

    def projected(self, amount: int, now: int) -> float | None:
        """The amount at the end of the window at the current rate."""
        rate = self.per_minute(amount)
        return None if rate is None else amount + rate * max(0, self.end - now) / times.MINUTE

    def include(self, bucket: Bucket) -> None:
        self.last = max(self.last, bucket.last)
        self.models.add(bucket.model)
        self.add(bucket.tally)


def read_windows(db: apsw.Connection, asked: Stats) -> list[Window]:
    """All windows, the oldest first."""
    from sess_schema.queries.views import parts  # not needed by the status line

    merged: dict[tuple[int, str], list[Any]] = {}
    for _, buckets in parts.of(db, asked, HOURS_PART, windows_by_session):
        for hour, first, last, model, *sums in buckets:
            bucket = merged.setdefault((hour, model), [hour, first, last, model, *[0] * len(sums)])
            bucket[1], bucket[2] = min(bucket[1], first), max(bucket[2], last)
            bucket[4:] = map(add, bucket[4:], sums)
    return [*windows(_bucket(*bucket[1:]) for bucket in sorted(merged.values()))]


def windows_by_session(db: apsw.Connection, asked: Stats) -> Counted:
    """The buckets of each session."""
    from sess_schema.queries.views import scope

    wanted = scope.responses(db, asked)
    rows = _sums(db, "s.id", wanted.sql, wanted.values)
    for session, buckets in groupby(rows, key=itemgetter(0)):
        yield session, {HOURS_PART: [list(bucket[1:]) for bucket in buckets]}


def current_window(db: apsw.Connection, now: int) -> Window | None:
    """The active window; reads only the days that decide where it starts."""
    since = now - 2 * times.DAY
    while True:
        where = "FROM usage u WHERE u.ts >= ? AND u.ts <= ? AND u.counted"
        rows = _sums(db, "0", where, (since, now))
        recent = [*windows(_bucket(*columns) for _, _, *columns in rows)]
        if not recent:
            return None
        # Nothing before a pause of five hours matters.
        rested = recent[0].first - since > LENGTH
        if rested or any(b.first - a.last > LENGTH for a, b in pairwise(recent)) or since <= 0:
            return recent[-1] if recent[-1].active(now) else None
        since = max(0, since - 2 * (now - since))


def recorded_reset(db: apsw.Connection, asked: Stats, now: int) -> int | None:
    """When the limit ends according to the service, if that is in the future."""
    from sess_schema.queries.views import scope

    wanted = scope.events(
        db, replace(asked, since=now - times.WEEK), joins="JOIN event_texts x ON x.id = e.id"
    )
    for (text,) in db.execute(
        f"SELECT substr(x.text, 1, 500) {wanted.sql} AND e.label = '{labels.API_ERROR}'"
        " ORDER BY e.ts DESC",
        wanted.values,
    ):
        if (match := _RESET.search(text)) is not None:
            reset = int(match[1]) * times.SECOND
            return reset if reset > now else None
    return None


def windows(buckets: Iterable[Bucket]) -> Iterator[Window]:
    """`buckets` are sorted by time."""
    window: Window | None = None
    for _, same_hour in groupby(buckets, key=lambda bucket: (bucket.first - 1) // times.HOUR):
        group = [*same_hour]
        first = min(bucket.first for bucket in group)
        if window is not None and (first - window.start > LENGTH or first - window.last > LENGTH):
            yield window
            window = None
        if window is None:
            window = Window(start=first - first % times.HOUR, first=first, last=first)
        for bucket in group:
            window.include(bucket)
    if window is not None:
        yield window


def _bucket(first: int, last: int, model: str, *sums: Any) -> Bucket:
    counts = [*sums[:3], 0, *sums[3:]]  # what is written for an hour is not summed by itself
    return Bucket(first, last, model, Tally(*counts))


def _sums(
    db: apsw.Connection, by: str, which: str, values: tuple[object, ...]
) -> Iterator[tuple[Any, ...]]:
    yield from db.execute(
        f"SELECT {by}, (u.ts - 1) / {times.HOUR}, min(u.ts), max(u.ts), {MODEL},"
        " sum(u.input_tokens), sum(u.output_tokens), sum(u.cache_write_tokens),"
        " sum(u.cache_read_tokens), coalesce(sum(u.cost_nano), 0), sum(u.cost_nano IS NULL),"
        f" count(*) {which} AND u.ts > 0 GROUP BY 1, 2, {MODEL} ORDER BY 1, 2, 3",
        values,
    )


class Budget(NamedTuple):
    limit: int  # nano-dollars or tokens
    money: bool
    period: str


@dataclass(slots=True, frozen=True)
class Spent:
    """How much of a budget is used in the current period."""

    budget: Budget
    start: int
    end: int
    used: int
    mean: float  # per day, over the last seven days
    projected: float  # at the end of the period

    @property
    def exceeded(self) -> bool:
        return self.used > self.budget.limit


def parse_budget(text: str) -> Budget:
    """`50`, `$100/week`, `5M/day`: dollars unless a token unit is given; per month by default."""
    given = _GIVEN.fullmatch(text.strip())
    if given is None or (given[1] and given[3]):
        raise SessError(
            f'invalid budget: "{text}"',
            hint="use dollars as 50, 100/week, 10/day or tokens as 5M/day; per month by default",
        )
    money = given[3] is None
    unit = 1_000_000_000 if money else _UNITS[given[3].lower()]
    # Not via float: a limit is exact.
    whole, _, fraction = given[2].partition(".")
    limit = int(whole + fraction) * unit // 10 ** len(fraction)
    return Budget(limit, money, (given[4] or "month").lower())


def spending(db: apsw.Connection, asked: Stats, budget: Budget, now: int) -> Spent:
    """Spent so far, and projected: plus the seven-day mean for each day left."""
    start, end = period_bounds(budget.period, now, asked.zone)
    used = _amount(replace(asked, since=start, until=now + 1).total(db), budget)
    week = replace(asked, since=now - _MEAN_DAYS * times.DAY, until=now + 1)
    mean = _amount(week.total(db), budget) / _MEAN_DAYS
    left = (end - now) / times.DAY
    return Spent(budget, start, end, used, mean, used + mean * left)


def _amount(tally: Tally, budget: Budget) -> int:
    return tally.cost_nano if budget.money else tally.tokens


def period_bounds(period: str, now: int, zone: tzinfo | None) -> tuple[int, int]:
    """The current day, week (from Monday) or month in a time zone."""
    moment = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone)
    first = moment.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if period == "week":
        first -= timedelta(days=first.weekday())
        last = first + timedelta(days=7)
    elif period == "month":
        first = first.replace(day=1)
        last = (first + timedelta(days=32)).replace(day=1)
    else:
        last = first + timedelta(days=1)
    return _wall_ms(first, zone), _wall_ms(last, zone)


def _wall_ms(wall: datetime, zone: tzinfo | None) -> int:
    """A wall-clock time in milliseconds; a naive one is in the system's zone."""
    moment = wall.replace(tzinfo=zone) if zone is not None else wall.astimezone()
    return int(moment.timestamp() * 1000)


def context_window(model: str, peak: int = 0) -> int:
    """The window of a model; the large one if a prompt does not fit the small one."""
    name = model.lower()
    size = next((size for part, size in _CONTEXTS.items() if part in name), _USUAL_CONTEXT)
    return size if peak <= size else max(_LARGE_CONTEXT, peak)
