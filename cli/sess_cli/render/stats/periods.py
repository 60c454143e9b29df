"""The time axis: the length of a column, the columns, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

UNDATED = "undated"
_MOST_COLUMNS = 110
_FILLED_YEARS = 100  # beyond that, a clock was wrong: only years with activity
_MARKS = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """The columns of every chart over time, in order, including empty ones."""

    step: str  # hour, day, week, month or year
    columns: list[str]

    def marks(self) -> list[tuple[int, str]]:
        """A few evenly spaced columns to label, and their short names."""
        every = max(1, -(-len(self.columns) // _MARKS))
        chosen = range(0, len(self.columns), every)
        years = [self.columns[number][:4] for number in chosen]
        return [
            (
                number,
                _short(self.step, self.columns[number], year=place == 0 or years[place - 1] != one),
            )
            for place, (number, one) in enumerate(zip(chosen, years, strict=True))
        ]

    def name(self, column: str) -> str:
        """The full name of a column."""
        if self.step == "week":
            return f"week of {column}"
        if self.step in ("day", "hour"):
            return f"{weekday(column)} {column}"
        return column


def weekday(column: str) -> str:
    return f"{date.fromisoformat(column[:10]):%a}"


def column_of(step: str, hour: str) -> str:
    """The column of an hour, given as `Stats` names it."""
    if step == "hour" or hour == UNDATED:
        return hour
    if step == "week":
        day = date.fromisoformat(hour[:10])
        return (day - timedelta(days=day.weekday())).isoformat()
    return hour[: {"day": 10, "month": 7, "year": 4}[step]]


def axis(hours: Iterable[str], since: int | None, until: int | None, zone: tzinfo | None) -> Axis:
    """Columns for all hours with activity, and for the whole period asked for."""
    known = sorted((hour for hour in hours if hour != UNDATED), key=moment)
    if not known:
        return Axis("day", [])
    begin, end = moment(known[0]), moment(known[-1])
    if since is not None:
        begin = min(begin, datetime.fromtimestamp(since / 1000, UTC))
        now = datetime.now(UTC)
        asked = now if until is None else datetime.fromtimestamp((until - 1) / 1000, UTC)
        end = max(end, min(asked, now))
    begin, end = begin.astimezone(zone), end.astimezone(zone)
    days = (end.date() - begin.date()).days + 1
    step = "year"
    for name, length in (("hour", 1 / 24), ("day", 1), ("week", 7), ("month", 30.4)):
        if days / length <= _MOST_COLUMNS:
            step = name
            break
    if step == "year" and end.year - begin.year > _FILLED_YEARS:
        return Axis(step, sorted({column_of(step, hour) for hour in known}))
    between = _hours(begin, end, zone) if step == "hour" else _days(begin.date(), end.date())
    return Axis(step, list(dict.fromkeys(column_of(step, one) for one in between)))


def moment(hour: str) -> datetime:
    return datetime.fromisoformat(hour)


def _hours(begin: datetime, end: datetime, zone: tzinfo | None) -> Iterator[str]:
    at = begin.astimezone(UTC)
    last = f"{end:%Y-%m-%d %H:00%z}"
    while (name := f"{at.astimezone(zone):%Y-%m-%d %H:00%z}") != last and at <= end:
        yield name
        at += timedelta(hours=1)  # of elapsed time: a day may have 23 or 25
    yield last


def _days(begin: date, end: date) -> Iterator[str]:
    for number in range((end - begin).days + 1):
        yield (begin + timedelta(days=number)).isoformat()


def _short(step: str, column: str, *, year: bool) -> str:
    """A short label; the year only where it changes."""
    if step == "year":
        return column
    if step == "month":
        return f"{date.fromisoformat(column + '-01'):%b %Y}"
    if step == "hour":
        return f"{weekday(column)} {column[11:16]}"
    day = date.fromisoformat(column)
    return f"{day:%b} {day.day}{f', {day.year}' if year else ''}"
