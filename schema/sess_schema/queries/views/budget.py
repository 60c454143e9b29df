"""A budget in dollars or tokens for a day, a week or a month, and how much of it is used."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, NamedTuple

import apsw

from sess_common import times
from sess_common.classes import dataclass, replace
from sess_common.errors import SessError
from sess_common.patterns import later

if TYPE_CHECKING:
    from sess_schema.queries.stats import Stats
    from sess_schema.queries.tally import Tally

PERIODS = ("day", "week", "month")
_GIVEN = later(r"(\$)?(\d+(?:\.\d+)?)([kmb])?(?:/(day|week|month))?", re.IGNORECASE)
_UNITS = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_MEAN_DAYS = 7


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


def parse(text: str) -> Budget:
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
    whole, _, part = given[2].partition(".")
    digits = len(part)
    limit = int(whole + part) * unit // 10**digits
    return Budget(limit, money, (given[4] or "month").lower())


def spent(db: apsw.Connection, asked: Stats, budget: Budget, now: int) -> Spent:
    """Spent so far, and projected: plus the seven-day mean for each day left."""
    start, end = bounds(budget.period, now, asked.zone)
    used = _amount(replace(asked, since=start, until=now + 1).total(db), budget)
    week = replace(asked, since=now - _MEAN_DAYS * times.DAY, until=now + 1)
    mean = _amount(week.total(db), budget) / _MEAN_DAYS
    left = (end - now) / times.DAY
    return Spent(budget, start, end, used, mean, used + mean * left)


def _amount(tally: Tally, budget: Budget) -> int:
    return tally.cost_nano if budget.money else tally.tokens


def bounds(period: str, now: int, zone: tzinfo | None) -> tuple[int, int]:
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
    return _ms(first, zone), _ms(last, zone)


def _ms(wall: datetime, zone: tzinfo | None) -> int:
    """A wall-clock time in milliseconds; a naive one is in the system's zone."""
    moment = wall.replace(tzinfo=zone) if zone is not None else wall.astimezone()
    return int(moment.timestamp() * 1000)
