"""Days as a calendar: weeks side by side, five shades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHADES = 4  # and one for zero
MOST_YEARS = 6
_YEAR = 53  # weeks


@dataclass(frozen=True, slots=True)
class Sheet:
    """One block of weeks: a year, or the weeks up to the last day."""

    name: str
    first: date
    last: date

    @property
    def weeks(self) -> int:
        return self.column(self.last) + 1

    def column(self, day: date) -> int:
        return ((day - self.first).days + self.first.weekday()) // 7

    def days(self) -> Iterator[date]:
        for number in range((self.last - self.first).days + 1):
            yield self.first + timedelta(days=number)

    def months(self) -> Iterator[tuple[int, str]]:
        """The columns where months begin, and their names; a few days at the start get none."""
        first = self.first
        if first.day > 1 and first.day <= 8:
            yield 0, f"{first:%b}"
        for day in self.days():
            if day.day == 1:
                yield self.column(day) + (day.weekday() > 0), f"{day:%b}"


def sheets(days: Mapping[date, int], today: date) -> list[Sheet]:
    """Newest first: up to a year as one block, longer periods as calendar years."""
    if not days:
        return []
    first, last = min(days), max(days)
    if last <= today and (today - last).days < 7:
        last = today
    begin = last - timedelta(days=(_YEAR - 1) * 7 + last.weekday())
    if first >= begin - timedelta(days=7):
        return [Sheet("", min(begin, first), last)]
    years = sorted({day.year for day in days}, reverse=True)[:MOST_YEARS]
    return [Sheet(str(year), date(year, 1, 1), date(year, 12, 31)) for year in years]


def slot(weekday: int, hour: int) -> str:
    """The name of an hour of the week."""
    return f"{WEEKDAYS[weekday]} {hour:02}:00–{hour:02}:59"


def limits(values: Sequence[int]) -> list[int]:
    """The largest value of each shade except the darkest; each has a quarter of the nonzero."""
    ordered = sorted(value for value in values if value > 0)
    if not ordered:
        return []
    marks = [ordered[max(0, -(-len(ordered) * rank // SHADES) - 1)] for rank in range(1, SHADES)]
    return sorted({_rounded(mark) for mark in marks if mark < ordered[-1]})


def shade(value: int, marks: Sequence[int]) -> int:
    """0 for zero, then 1 to 4."""
    if value <= 0:
        return 0
    above = sum(value > mark for mark in marks)
    return SHADES - len(marks) + above


def legend(marks: Sequence[int]) -> list[tuple[int, str]]:
    """The shades with their ranges of values."""
    ranges = [(0, "0")]
    low = 1
    for number, mark in enumerate(marks):
        ranges.append((SHADES - len(marks) + number, f"{low:,}" + f"–{mark:,}" * (mark > low)))
        low = mark + 1
    return [*ranges, (SHADES, f"{low:,}+")]


def _rounded(mark: int) -> int:
    """Two leading digits are enough for a legend."""
    if mark < 100:
        return mark
    unit: int = 10 ** (len(str(mark)) - 2)
    return mark // unit * unit
