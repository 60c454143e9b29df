"""Estimated five-hour windows, as ccusage draws them, and budgets.

A window starts at the full hour (UTC) of its first response and lasts five hours. A response more
than five hours after that start, or after the previous response, starts another one. Services may
reset at other times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from sess_common import times
from sess_common.classes import dataclass, field, replace
from sess_common.patterns import later
from sess_schema import labels
from sess_schema.sums import MODEL

if TYPE_CHECKING:
    from sess_schema.queries.stats import Stats
    from sess_schema.queries.views.parts import Counted

PART = "hours"
LENGTH = 5 * times.HOUR
_RESET = later(r"limit reached\|(\d{10})\b")


class Bucket(NamedTuple):
    """The responses of one model after a full hour, up to and including the next one.

    An hour thus never spans two windows, so buckets give the same windows as single responses.
    """

    first: int
    last: int
    model: str
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    cost_nano: int
    unpriced: int
    requests: int


@dataclass(slots=True)
class Window:
    start: int
    first: int
    last: int
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    cost_nano: int = 0
    unpriced: int = 0
    requests: int = 0
    models: set[str] = field(default_factory=set)

    @property
    def end(self) -> int:
        return self.start + LENGTH

    @property
    def tokens(self) -> int:
        cached = self.cache_write_tokens + self.cache_read_tokens
        return self.input_tokens + self.output_tokens + cached

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

    def add(self, bucket: Bucket) -> None:
        self.last = max(self.last, bucket.last)
        self.input_tokens += bucket.input_tokens
        self.output_tokens += bucket.output_tokens
        self.cache_write_tokens += bucket.cache_write_tokens
        self.cache_read_tokens += bucket.cache_read_tokens
        self.cost_nano += bucket.cost_nano
        self.unpriced += bucket.unpriced
        self.requests += bucket.requests
        self.models.add(bucket.model)


def read(db: apsw.Connection, asked: Stats) -> list[Window]:
    """All windows, the oldest first."""
    from sess_schema.queries.views import parts  # not needed by the status line

    found: dict[tuple[int, str], list[Any]] = {}
    for _, buckets in parts.of(db, asked, PART, by_session):
        for hour, first, last, model, *sums in buckets:
            one = found.get((hour, model))
            if one is None:
                found[hour, model] = [hour, first, last, model, *sums]
                continue
            one[1], one[2] = min(one[1], first), max(one[2], last)
            one[4:] = [a + b for a, b in zip(one[4:], sums, strict=True)]
    return [*windows(Bucket(*one[1:]) for one in sorted(found.values()))]


def by_session(db: apsw.Connection, asked: Stats) -> Counted:
    """The buckets of each session."""
    from sess_schema.queries.views import scope

    wanted = scope.responses(db, asked)
    rows = _sums(db, "s.id", wanted.sql, wanted.values)
    for session, buckets in groupby(rows, key=itemgetter(0)):
        yield session, {PART: [list(bucket[1:]) for bucket in buckets]}


def current(db: apsw.Connection, now: int) -> Window | None:
    """The active window; reads only the days that decide where it starts."""
    since = now - 2 * times.DAY
    while True:
        where = "FROM usage u WHERE u.ts >= ? AND u.ts <= ? AND u.counted"
        found = [*windows(_buckets(db, where, (since, now)))]
        # Nothing before a pause of five hours matters.
        rested = found and found[0].first - since > LENGTH
        pairs = pairwise(found)
        if not found or rested or any(b.first - a.last > LENGTH for a, b in pairs) or since <= 0:
            last = found[-1] if found else None
            return last if last is not None and last.active(now) else None
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
        if (found := _RESET.search(text)) is not None:
            reset = int(found[1]) * times.SECOND
            return reset if reset > now else None
    return None


def windows(buckets: Iterable[Bucket]) -> Iterator[Window]:
    """`buckets` are sorted by time."""
    open_: Window | None = None
    for group in _by_hour(buckets):
        first = min(bucket.first for bucket in group)
        if open_ is not None and (first - open_.start > LENGTH or first - open_.last > LENGTH):
            yield open_
            open_ = None
        if open_ is None:
            open_ = Window(first - first % times.HOUR, first, first)
        for bucket in group:
            open_.add(bucket)
    if open_ is not None:
        yield open_


def _by_hour(buckets: Iterable[Bucket]) -> Iterator[list[Bucket]]:
    group: list[Bucket] = []
    for bucket in buckets:
        if group and _hour(bucket) != _hour(group[0]):
            yield group
            group = []
        group.append(bucket)
    if group:
        yield group


def _hour(bucket: Bucket) -> int:
    return (bucket.first - 1) // times.HOUR


def _buckets(db: apsw.Connection, which: str, values: tuple[object, ...]) -> Iterator[Bucket]:
    for _, _, *columns in _sums(db, "0", which, values):
        yield Bucket(*columns)


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
