"""Times, durations, sizes and counts in human-readable form."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from sess_common import times
from sess_common.program import counted

plural = counted  # both programs write counts alike
_DATES_FROM = 8 * times.WEEK


def ago(moment: int | None, now: int, *, utc: bool = False) -> str:
    """`3h ago`; a date if long ago."""
    if moment is None:
        return "no date"
    passed = now - moment
    if passed < -times.MINUTE or passed >= _DATES_FROM:
        return f"{times.local(moment, utc=utc):%Y-%m-%d}"
    if passed < times.MINUTE:
        return "just now"
    for unit, name in ((times.WEEK, "w"), (times.DAY, "d"), (times.HOUR, "h")):
        if passed >= (2 * unit if unit == times.WEEK else unit):
            return f"{passed // unit}{name} ago"
    return f"{passed // times.MINUTE}m ago"


def clock(moment: int | None, *, utc: bool = False, seconds: bool = False) -> str:
    """`2026-02-20 14:30`, or only the time with `seconds`."""
    if moment is None:
        return "no date"
    return f"{times.local(moment, utc=utc):{'%H:%M:%S' if seconds else '%Y-%m-%d %H:%M'}}"


def clock_in(zone: tzinfo | None, moment: int | None, form: str = "%Y-%m-%d %H:%M", /) -> str:
    """The wall-clock time in a zone."""
    if moment is None:
        return "no date"
    return f"{datetime.fromtimestamp(moment / 1000, UTC).astimezone(zone):{form}}"


def period(first: int | None, last: int | None, *, utc: bool = False) -> str:
    """`2026-02-20 14:30 to 15:05`, with a second date if it is another; one time if they agree."""
    begun = clock(first, utc=utc)
    ended = clock(last if last is not None else first, utc=utc)
    if ended == begun:
        return begun
    return f"{begun} to {ended[11:] if ended[:10] == begun[:10] else ended}"


def duration(milliseconds: int) -> str:
    """`500ms`, `1.5s`, `2m30s`, `1h5m`."""
    if milliseconds < times.SECOND:
        return f"{milliseconds}ms"
    if milliseconds < times.MINUTE:
        # Truncated, not rounded: 59,999 ms is not 60.0s.
        return f"{milliseconds // 100 / 10:.1f}s"
    if milliseconds < times.HOUR:
        return f"{milliseconds // times.MINUTE}m{milliseconds // times.SECOND % 60}s"
    if milliseconds < 2 * times.DAY:
        return f"{milliseconds // times.HOUR}h{milliseconds // times.MINUTE % 60}m"
    return f"{milliseconds // times.DAY}d{milliseconds // times.HOUR % 24}h"


def spans(whole: int, active: int) -> str:
    """`1h5m, 20m3s active`; only the first if nothing was idle; empty if no time passed."""
    if not whole:
        return ""
    return duration(whole) + (f", {duration(active)} active" if active < whole else "")


def size(count: int) -> str:
    """`512 bytes`, `1.5 MB`."""
    if count < 1000:
        return plural(count, "byte")
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} TB"


def number(value: float) -> str:
    return f"{value:,}"


def decimal(value: float) -> str:
    return f"{value:,.1f}"


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def outcome(status: str | None) -> str:
    """The status of a call in words: `ok`, `failed`, `denied` or `no result`."""
    return {"error": "failed", "pending": "no result", None: "no result"}.get(status, status or "")


def outcomes(failed: int, denied: int) -> str:
    """`3 failed, 1 denied`; empty if every call succeeded."""
    counts = ((failed, "failed"), (denied, "denied"))
    return ", ".join(f"{count:,} {name}" for count, name in counts if count)
