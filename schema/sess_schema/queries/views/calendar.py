"""Activity by day and by hour of the week."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta

import apsw

from sess_schema.queries.stats import Stats
from sess_schema.queries.tally import Tally

UNDATED = "undated"


@dataclass(slots=True)
class Calendar:
    days: dict[date, Tally] = field(default_factory=dict)  # with a prompt or a response, in order
    hours: dict[tuple[int, int], Tally] = field(default_factory=dict)  # (weekday, hour)

    def streaks(self, today: date) -> tuple[int, int]:
        """The current one, even if today has no activity yet, and the longest."""
        return streaks(self.days, today)


def read(db: apsw.Connection, asked: Stats) -> Calendar:
    """By the time of events, not of sessions."""
    found = Calendar()
    for label, tally in asked.groups(db, "hour").items():
        if label == UNDATED or not (tally.prompts or tally.requests):
            continue
        day, hour = date.fromisoformat(label[:10]), int(label[11:13])
        found.days.setdefault(day, Tally()).add(tally)
        found.hours.setdefault((day.weekday(), hour), Tally()).add(tally)
    found.days = dict(sorted(found.days.items()))
    return found


def busy(tally: Tally) -> int:
    """The count that every calendar shows: prompts and responses."""
    return tally.prompts + tally.requests


def streaks(days: Iterable[date], today: date) -> tuple[int, int]:
    longest = length = 0
    before: date | None = None
    for day in sorted(days):
        length = length + 1 if before is not None and day - before == timedelta(days=1) else 1
        longest = max(longest, length)
        before = day
    still = before is not None and timedelta(0) <= today - before <= timedelta(days=1)
    return (length if still else 0), longest
