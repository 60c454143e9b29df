"""Times as people write them, and as JSON has them. The index stores UTC milliseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import time as clock

from sess_common.classes import TYPE_CHECKING, later
from sess_common.errors import SessError

if TYPE_CHECKING:
    import re

SECOND, MINUTE, HOUR, DAY, WEEK = 1000, 60_000, 3_600_000, 86_400_000, 604_800_000

_UNITS = {
    "s": SECOND, "sec": SECOND, "second": SECOND,
    "m": MINUTE, "min": MINUTE, "minute": MINUTE,
    "h": HOUR, "hour": HOUR,
    "d": DAY, "day": DAY,
    "w": WEEK, "week": WEEK,
    "mo": 30 * DAY, "month": 30 * DAY,
    "y": 365 * DAY, "year": 365 * DAY,
}  # fmt: skip
_AMOUNT = later(r"(?:(?:last |past )?(\d{1,9})\s*|an? |past )([a-z]+?)s?(?:\s+ago)?")
_CALENDAR = later(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_CLOCK = later(
    r"(?:(.+) )?(?:(\d{1,2}):(\d{2})(?::(\d{2}))?(?: ?([ap]m))?|(\d{1,2}) ?([ap]m)|(noon|midnight))"
)
_DATE = later(r"([a-z]+) (\d{1,2})(?:,? (\d{4}))?|(\d{1,2}) ([a-z]+)(?: (\d{4}))?")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_SHORTEST_NAME = 3
_LEAP = 8  # years, at most, since the last 29 February
_HINT = (
    "use 7d, 36h, today, yesterday, monday, last week, this month, 12:00, 2026-02-20 or"
    " 2026-02-20T14:30"
)
EARLIEST = 946_684_800_000  # 2000-01-01: what is older is a missing time
_LATEST = 253_402_300_799_999  # the last millisecond that datetime can represent

Span = tuple[datetime, datetime]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def since(
    text: str, *, utc: bool = False, zone: tzinfo | None = None, now: int | None = None
) -> int:
    """The first moment of a time expression."""
    return span(text, utc=utc, zone=zone, now=now)[0]


def until(
    text: str, *, utc: bool = False, zone: tzinfo | None = None, now: int | None = None
) -> int:
    """The moment after the last one of a time expression: a date includes its whole day."""
    return span(text, utc=utc, zone=zone, now=now)[1]


def span(
    text: str, *, utc: bool = False, zone: tzinfo | None = None, now: int | None = None
) -> tuple[int, int]:
    """Start and end of a time expression, in its own zone, else in `zone`, else in local time."""
    if zone is None and utc:
        zone = UTC
    words = " ".join(text.lower().split())
    current = now_ms() if now is None else now
    if words == "now":
        return current, current
    if amount := _AMOUNT.fullmatch(words):
        unit = _UNITS.get(amount[2])
        if unit is not None:
            moment = max(current - int(amount[1] or 1) * unit, -_LATEST)
            return moment, moment
    try:
        if calendar := _CALENDAR.fullmatch(words):
            return _calendar(*calendar.groups(), zone=zone)
        if not words[:4].isdigit():
            named = _spoken_span(words, _at(current, zone).replace(tzinfo=None))
            if named is not None:
                return _ms(named[0], zone), _ms(named[1], zone)
        moment = _ms(datetime.fromisoformat(text.strip()), zone)
    except (ValueError, OverflowError, OSError):
        raise SessError(f'invalid time: "{text}"', hint=_HINT) from None
    return moment, moment


def iso(moment: int | None) -> str | None:
    """`2026-02-20T14:30:00.000Z`, or None for no time."""
    if moment is None or not 0 <= moment <= _LATEST:
        return None
    seconds, milliseconds = divmod(moment, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


def local(moment: int, *, utc: bool = False) -> datetime:
    """The wall-clock time at a moment."""
    clamped = min(max(moment, 0), _LATEST)
    return _at(clamped, UTC if utc else None)


def _calendar(
    year: str, month: str | None, day: str | None, *, zone: tzinfo | None
) -> tuple[int, int]:
    start = datetime(int(year), int(month or 1), int(day or 1))  # noqa: DTZ001 - _ms adds the zone
    try:
        if day:
            end = start + timedelta(days=1)
        elif month:
            end = (start + timedelta(days=31)).replace(day=1)
        else:
            end = start.replace(year=start.year + 1)
    except (ValueError, OverflowError):  # people write 9999 for the end of time
        end = datetime.max.replace(tzinfo=UTC)
    return _ms(start, zone), _ms(end, zone)


def _at(moment: int, zone: tzinfo | None) -> datetime:
    there = datetime.fromtimestamp(moment / 1000, UTC).astimezone(zone)
    return there if zone is not None else there.replace(tzinfo=None)


def _ms(moment: datetime, zone: tzinfo | None) -> int:
    if moment.tzinfo is None:
        try:
            # astimezone takes a naive time as local and so follows that day's rules.
            moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
        except (ValueError, OverflowError):  # at the ends of the calendar, hours do not matter
            moment = moment.replace(tzinfo=UTC)
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))


# -- as people say them: `monday`, `last week`, `feb 20`, `yesterday 12:00`, `5pm`


def _spoken_span(words: str, now: datetime) -> Span | None:
    """The first moment, and the one after the last; both without a zone."""
    if (at := _clock(words, now)) is not None:
        return at, at
    return _named_span(words.replace("-", " "), now)


def _named_span(words: str, now: datetime) -> Span | None:
    """A day, week, month or year that people have a name for."""
    today = datetime.combine(now.date(), clock.min)
    if words in ("today", "yesterday"):
        return _span_of_days(today - timedelta(days=words == "yesterday"), 1)
    which, _, unit = words.rpartition(" ")
    if which in ("this", "last") and unit in ("week", "month", "year"):
        back = which == "last"
        if unit == "week":
            return _span_of_days(today - timedelta(days=today.weekday() + 7 * back), 7)
        first = today.replace(day=1, month=today.month if unit == "month" else 1)
        if back:
            first = _first_of(first - timedelta(days=1), unit)
        return first, _first_of(first + timedelta(days=31 if unit == "month" else 366), unit)
    if which in ("", "last") and (day := _number(unit, _DAYS)) is not None:
        passed = (today.weekday() - day) % 7
        return _span_of_days(today - timedelta(days=passed or (7 if which else 0)), 1)
    if which in ("", "last") and (month := _number(unit, _MONTHS)) is not None:
        year = today.year - (
            month + 1 > today.month or (which == "last" and month + 1 == today.month)
        )
        return _span_of_month(year, month)
    if (month := _number(which, _MONTHS)) is not None and unit.isdecimal() and len(unit) == 4:
        return _span_of_month(int(unit), month)
    if date := _DATE.fullmatch(words):
        return _span_of_date(date, today)
    return None


def _span_of_month(year: int, number: int) -> Span:
    first = datetime(year, number + 1, 1)  # noqa: DTZ001 - _ms adds the zone
    return first, _first_of(first + timedelta(days=31), "month")


def _span_of_date(date: re.Match[str], today: datetime) -> Span | None:
    """`feb 20`, `20 feb 2025`: the last one, if there is no year."""
    month = _number(date[1] or date[5], _MONTHS)
    if month is None:
        return None
    year, number = date[3] or date[6], int(date[2] or date[4])
    last = int(year or today.year)
    for past in range(last, last - (1 if year else 1 + _LEAP), -1):
        try:
            day = today.replace(year=past, month=month + 1, day=number)
        except ValueError:
            continue
        if year or day <= today:
            return _span_of_days(day, 1)
    return None


def _clock(words: str, now: datetime) -> datetime | None:
    """`12:00`, `5pm`: the last time it was that late; `monday 9:30`."""
    said = _CLOCK.fullmatch(words)
    if said is None:
        return None
    hour = 12 * (said[8] == "noon") if said[8] else int(said[2] or said[6])
    if half := said[5] or said[7]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "pm")
    at = clock(hour, int(said[3] or 0), int(said[4] or 0))
    if said[1] is None:
        moment = datetime.combine(now.date(), at)
        return moment - timedelta(days=moment > now)
    named = _named_span(said[1].replace("-", " "), now)
    if named is None or named[1] - named[0] > timedelta(days=1):
        return None
    return datetime.combine(named[0].date(), at)


def _span_of_days(first: datetime, count: int) -> Span:
    return first, first + timedelta(days=count)


def _first_of(day: datetime, unit: str) -> datetime:
    return day.replace(day=1, month=day.month if unit == "month" else 1)


def _number(word: str, names: tuple[str, ...]) -> int | None:
    """Which of the names a word begins: `mon`, `monday`, `sept`."""
    if len(word) < _SHORTEST_NAME:
        return None
    return next((n for n, name in enumerate(names) if name.startswith(word)), None)
