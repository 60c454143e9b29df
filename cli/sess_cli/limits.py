"""The limits of a subscription, as the service tells them through the agent's status line.

Readings are kept: a shell's prompt knows them then, too, and they make a forecast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sess_cli.logfile import LogFile
from sess_cli.render import amounts
from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass

if TYPE_CHECKING:
    from typing import Any

LOG = LogFile("limits.jsonl", most_bytes=256 << 10, line_bytes=90)
LENGTHS = {"five_hour": 5 * times.HOUR, "seven_day": 7 * times.DAY}
SHORT = {"five_hour": "5h limit", "seven_day": "7d limit"}
_RECENT = 400  # readings that are looked at for a line
_STEP = 1  # points between readings that are kept: a hundred for each window
_SLACK = times.HOUR  # by which clocks may differ
_MOST_USED = 1000
# The share of a window that readings must span: ten minutes say nothing about a week.
_LEAST_SHARE = 0.05


@dataclass(slots=True, frozen=True)
class Reading:
    at: int
    name: str
    used: float  # per cent
    reset: int


@dataclass(slots=True, frozen=True)
class Limit:
    """What is used of a limit now, at least."""

    name: str
    used: float
    reset: int
    per_hour: float | None  # points, since its first reading
    full: int | None  # when it is used up at this rate, if that is before the reset

    def text(self, now: int) -> str:
        if self.full is not None:
            return f"{int(self.used)}%, full in {amounts.duration(self.full - now)}"
        return f"{int(self.used)}%, {amounts.duration(self.reset - now)} left"

    def facts(self) -> dict[str, Any]:
        """Its keys are a public contract."""
        return {
            "used_percentage": self.used,
            "resets_at": times.iso(self.reset),
            "points_per_hour": None if self.per_hour is None else round(self.per_hour, 2),
            "full_at": times.iso(self.full),
        }


def handed(payload: dict[str, Any], now: int) -> Iterator[Reading]:
    """What an agent hands over; what is missing, past or impossible is left out."""
    told = payload.get("rate_limits")
    for name, length in LENGTHS.items():
        window = told.get(name) if isinstance(told, dict) else None
        if not isinstance(window, dict):
            continue
        used, seconds = _used(window.get("used_percentage")), window.get("resets_at")
        if used is None or not isinstance(seconds, int | float):
            continue
        if now / times.SECOND < seconds < (now + length + _SLACK) / times.SECOND:
            # The same reset is now and then told a second earlier or later.
            yield Reading(now, name, used, round(seconds / 60) * times.MINUTE)


def current(readings: Iterable[Reading], now: int) -> list[Limit]:
    """The limits that hold: those just read, else the last that were kept. Keeps what is new."""
    read = {reading.name: reading for reading in readings}
    kept = [one for one in _kept(LOG.latest(_RECENT)) if one.at <= now < one.reset]
    limits = []
    for name in LENGTHS:
        earlier = [one for one in kept if one.name == name]
        reading = read.get(name) or (earlier[-1] if earlier else None)
        if reading is None:
            continue
        # Another session may tell what it heard an hour ago: within a window, only more is news.
        same = [one for one in earlier if one.reset == reading.reset]
        known = max((one.used for one in same), default=None)
        if known is None or reading.used >= known + _STEP:
            LOG.append({"at": now, "name": name, "used": reading.used, "reset": reading.reset})
        limits.append(_limit([*same, reading], now))
    return limits


def _limit(readings: list[Reading], now: int) -> Limit:
    """A straight line from the first reading of a window."""
    first = readings[0]
    used, reset = max(one.used for one in readings), first.reset
    span = now - first.at
    if span < _LEAST_SHARE * LENGTHS[first.name]:
        return Limit(first.name, used, reset, None, None)
    rate = (used - first.used) / span
    left = (100 - used) / rate if rate > 0 and used < 100 else None
    full = None if left is None or now + left >= reset else round(now + left)
    return Limit(first.name, used, reset, rate * times.HOUR, full)


def history(since: int | None, until: int | None) -> Iterator[dict[str, Any]]:
    """How much was used of each window by its highest reading, the latest window first."""
    highest: dict[tuple[int, str], Reading] = {}
    for one in _kept(LOG.entries()):
        if one.at < (since or 0) or one.at >= (until or one.at + 1):
            continue
        key = (one.reset, one.name)
        if key not in highest or highest[key].used < one.used:
            highest[key] = one
    for (reset, name), one in sorted(highest.items(), reverse=True):
        yield {
            "limit": name,
            "resets_at": times.iso(reset),
            "used_percentage": one.used,
            "read_at": times.iso(one.at),
        }


def _kept(entries: Iterable[dict[str, Any]]) -> Iterator[Reading]:
    for entry in entries:
        at, name, used, reset = (entry.get(key) for key in ("at", "name", "used", "reset"))
        percent = _used(used)
        if percent is None or not isinstance(name, str) or name not in LENGTHS:
            continue
        if isinstance(at, int) and isinstance(reset, int):
            yield Reading(at, name, percent, reset)


def _used(value: object) -> float | None:
    """A share in per cent."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= _MOST_USED else None
