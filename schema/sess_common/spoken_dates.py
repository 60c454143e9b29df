"""Dates as people say them: `monday`, `last week`, `feb 20`, `yesterday 12:00`, `5pm`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from datetime import time as clock

_CLOCK = re.compile(
    r"(?:(.+) )?(?:(\d{1,2}):(\d{2})(?::(\d{2}))?(?: ?([ap]m))?|(\d{1,2}) ?([ap]m)|(noon|midnight))"
)
_DATE = re.compile(r"([a-z]+) (\d{1,2})(?:,? (\d{4}))?|(\d{1,2}) ([a-z]+)(?: (\d{4}))?")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_SHORTEST_NAME = 3
_LEAP = 8  # years, at most, since the last 29 February

Span = tuple[datetime, datetime]


def span(words: str, now: datetime) -> Span | None:
    """The first moment, and the one after the last; both without a zone."""
    if (at := _clock(words, now)) is not None:
        return at, at
    return _named(words.replace("-", " "), now)


def _named(words: str, now: datetime) -> Span | None:
    """A day, week, month or year that people have a name for."""
    today = datetime.combine(now.date(), clock.min)
    if words in ("today", "yesterday"):
        return _days(today - timedelta(days=words == "yesterday"), 1)
    which, _, unit = words.rpartition(" ")
    if which in ("this", "last") and unit in ("week", "month", "year"):
        back = which == "last"
        if unit == "week":
            return _days(today - timedelta(days=today.weekday() + 7 * back), 7)
        first = today.replace(day=1, month=today.month if unit == "month" else 1)
        if back:
            first = _first_of(first - timedelta(days=1), unit)
        return first, _first_of(first + timedelta(days=31 if unit == "month" else 366), unit)
    if which in ("", "last") and (day := _number(unit, _DAYS)) is not None:
        passed = (today.weekday() - day) % 7
        return _days(today - timedelta(days=passed or (7 if which else 0)), 1)
    if which in ("", "last") and (month := _number(unit, _MONTHS)) is not None:
        year = today.year - (
            month + 1 > today.month or (which == "last" and month + 1 == today.month)
        )
        return _month(year, month)
    if (month := _number(which, _MONTHS)) is not None and unit.isdecimal() and len(unit) == 4:
        return _month(int(unit), month)
    if date := _DATE.fullmatch(words):
        return _date(date, today)
    return None


def _month(year: int, number: int) -> Span:
    first = datetime(year, number + 1, 1)  # noqa: DTZ001 - _ms adds the zone
    return first, _first_of(first + timedelta(days=31), "month")


def _date(date: re.Match[str], today: datetime) -> Span | None:
    """`feb 20`, `20 feb 2025`: the last one, if there is no year."""
    month = _number(date[1] or date[5], _MONTHS)
    if month is None:
        return None
    year, number = date[3] or date[6], int(date[2] or date[4])
    last = int(year or today.year)
    for one in range(last, last - (1 if year else 1 + _LEAP), -1):
        try:
            day = today.replace(year=one, month=month + 1, day=number)
        except ValueError:
            continue
        if year or day <= today:
            return _days(day, 1)
    return None


def _clock(words: str, now: datetime) -> datetime | None:
    """`12:00`, `5pm`: the last time it was that late; `monday 9:30`."""
    found = _CLOCK.fullmatch(words)
    if found is None:
        return None
    hour = 12 * (found[8] == "noon") if found[8] else int(found[2] or found[6])
    if half := found[5] or found[7]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "pm")
    at = clock(hour, int(found[3] or 0), int(found[4] or 0))
    if found[1] is None:
        moment = datetime.combine(now.date(), at)
        return moment - timedelta(days=moment > now)
    named = _named(found[1].replace("-", " "), now)
    if named is None or named[1] - named[0] > timedelta(days=1):
        return None
    return datetime.combine(named[0].date(), at)


def _days(first: datetime, count: int) -> Span:
    return first, first + timedelta(days=count)


def _first_of(day: datetime, unit: str) -> datetime:
    return day.replace(day=1, month=day.month if unit == "month" else 1)


def _number(word: str, names: tuple[str, ...]) -> int | None:
    """Which of the names a word begins: `mon`, `monday`, `sept`."""
    if len(word) < _SHORTEST_NAME:
        return None
    return next((n for n, name in enumerate(names) if name.startswith(word)), None)
