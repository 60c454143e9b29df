"""Times as people write them, and as JSON has them. The index stores UTC milliseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, tzinfo

from sess_common.errors import SessError
from sess_common.patterns import later

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
_HINT = (
    "use 7d, 36h, today, yesterday, monday, last week, this month, 12:00, 2026-02-20 or"
    " 2026-02-20T14:30"
)
EARLIEST = 946_684_800_000  # 2000-01-01: what is older is a missing time
_LATEST = 253_402_300_799_999  # the last millisecond that datetime can represent


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
            from sess_common import spoken_dates  # rarely needed

            named = spoken_dates.span(words, _at(current, zone).replace(tzinfo=None))
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
