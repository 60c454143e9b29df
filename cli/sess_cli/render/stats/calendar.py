"""`sess stats calendar`: a year of days, streaks, and the hours of the week.

Pages and pictures draw the same sheets, shades and legend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import Amount, Chart, Column, Report, Section, ViewOptions
from sess_cli.render.tallies import cost, money, tokens
from sess_cli.terminal import Terminal
from sess_common.classes import dataclass, replace
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import overview
from sess_schema.sums import Tally

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHADES = 4  # and one for zero
MOST_YEARS = 6
_YEAR = 53  # weeks
# Distinguishable without colour, too.
_BLOCKS = "·░▒▓█"
_GREENS = ("", "38;5;22", "38;5;28", "38;5;34", "38;5;46")
_MARGIN = 5  # columns left of the year
_COLUMNS = (
    *Column.several(
        amounts.number, prompts="prompts", requests="responses", _tool_calls="tool calls"
    ),
    *Column.several(amounts.number, _sessions="sessions", tokens="tokens"),
    Column("_cost", "cost"),
)
_YEAR_CHART = Chart(
    "year", "calendar", "Calendar", "Prompts and responses per day.",
    "No activity in this period.", (Column("day", "day"), *_COLUMNS), ["_busy"],
)  # fmt: skip
_WEEK_CHART = Chart(
    "week", "clock", "Hours of the week", "Prompts and responses by weekday and hour.",
    "No activity in this period.", (Column("_slot", "hour"), *_COLUMNS[:3]), ["_busy"],
)  # fmt: skip


def days_between(first: date, last: date) -> Iterator[date]:
    """Both included."""
    for after in range((last - first).days + 1):
        yield first + timedelta(days=after)


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
        return days_between(self.first, self.last)

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


def shade_limits(values: Sequence[int]) -> list[int]:
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


def legend_labels(marks: Sequence[int]) -> list[tuple[int, str]]:
    """The shades with their ranges of values."""
    ranges = [(0, "0")]
    low = 1
    for level, mark in enumerate(marks, SHADES - len(marks)):
        ranges.append((level, f"{low:,}" + f"–{mark:,}" * (mark > low)))
        low = mark + 1
    return [*ranges, (SHADES, f"{low:,}+")]


def _rounded(mark: int) -> int:
    """Two leading digits are enough for a legend."""
    if mark < 100:
        return mark
    unit: int = 10 ** (len(str(mark)) - 2)
    return mark // unit * unit


def calendar_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    calendar = overview.read_calendar(db, asked)
    today = datetime.fromtimestamp(options.now / 1000, UTC).astimezone(asked.zone).date()
    current, longest = overview.streaks(calendar.days, today)
    days = [{"day": day.isoformat(), **_facts(tally)} for day, tally in calendar.days.items()]
    hours = [
        {"weekday": WEEKDAYS[day], "hour": hour, **_facts(tally), "_slot": slot(day, hour)}
        for (day, hour), tally in sorted(calendar.hours.items())
    ]
    whole = Tally()
    for tally in calendar.days.values():
        whole.add(tally)
    total = {
        "total": "total",
        "active_days": len(days),
        "current_streak": current,
        "longest_streak": longest,
    }
    span = f", {days[0]['day']} to {days[-1]['day']}" if days else ""
    facts = [
        ("active", f"{amounts.plural(len(days), 'day')}{span}"),
        ("streak", f"{amounts.plural(current, 'day')}, longest {longest}")
        if current
        else ("longest streak", amounts.plural(longest, "day")),
    ]
    if days:
        most = max(calendar.days, key=lambda day: (overview.busy(calendar.days[day]), day))
        busiest = calendar.days[most]
        used = f"{money(busiest.cost_nano)}, {tokens(busiest.tokens)}"
        prompts = amounts.plural(busiest.prompts, "prompt")
        facts.append(("busiest", f"{most:%a %Y-%m-%d}: {used}, {prompts}"))
    sections = [
        Section("total", [total]),
        Section("day", days, charts=[replace(_YEAR_CHART, until=today, facts=facts)]),
        Section("hour", hours, charts=[replace(_WEEK_CHART, total=_facts(whole))]),
    ]
    draw = partial(_draw, calendar=calendar, today=today)
    return Report("calendar", sections, facts=facts, draw=draw)


def _facts(tally: Tally) -> dict[str, Any]:
    return {
        "prompts": tally.prompts,
        "requests": tally.requests,
        "tokens": tally.tokens,
        "cost_usd": tally.cost_nano / 1e9,
        "cost_nano_usd": tally.cost_nano,
        "_tool_calls": tally.tool_calls,
        "_sessions": len(tally.sessions),
        "_cost": Amount(tally.cost_nano, cost(tally)),
        "_busy": overview.busy(tally),
    }


def _draw(terminal: Terminal, calendar: overview.Calendar, today: date) -> None:
    if not calendar.days:
        return
    busy = overview.busy
    terminal.write("")
    _draw_year(terminal, {day: busy(tally) for day, tally in calendar.days.items()}, today)
    terminal.write("")
    _draw_hours(terminal, {slot: busy(tally) for slot, tally in calendar.hours.items()})
    terminal.write("")
    legend = " ".join(_shaded(terminal, level) for level in range(len(_BLOCKS)))
    less, more = (
        terminal.style("less ", "dim"),
        terminal.style(" more prompts and responses", "dim"),
    )
    terminal.write(f"{less}{legend}{more}")


def _draw_year(terminal: Terminal, values: dict[date, int], today: date) -> None:
    """Weeks as columns, ending with today's or that of the last active day."""
    last = max(values)
    if timedelta(0) <= today - last < timedelta(days=300):
        last = today
    monday = last - timedelta(days=last.weekday())
    weeks = min(_YEAR, (terminal.width or 80) - _MARGIN)
    first = monday - timedelta(weeks=weeks - 1)
    level = _levels(values.values())
    terminal.write(terminal.style(_months(first, weeks), "dim"))
    for weekday, name in enumerate(WEEKDAYS):
        line = ""
        for week in range(weeks):
            day = first + timedelta(weeks=week, days=weekday)
            line += " " if day > last else _shaded(terminal, level(values.get(day, 0)))
        label = name if weekday % 2 == 0 else ""
        terminal.write(terminal.style(f"{label:<{_MARGIN}}", "dim") + line.rstrip())


def _months(first: date, weeks: int) -> str:
    """The name of each month above its first whole week."""
    line = " " * _MARGIN
    for week in range(weeks):
        day = first + timedelta(weeks=week)
        if day.day <= 7 and week + 3 <= weeks:
            line = line.ljust(_MARGIN + week) + f"{day:%b}"
    return line


def _draw_hours(terminal: Terminal, values: dict[tuple[int, int], int]) -> None:
    level = _levels(values.values())
    heads = "".join(f"{hour:<6}" for hour in range(0, 24, 3)).rstrip()
    terminal.write(terminal.style(" " * _MARGIN + heads, "dim"))
    for weekday, name in enumerate(WEEKDAYS):
        cells = "".join(
            _shaded(terminal, level(values.get((weekday, hour), 0)), 2) for hour in range(24)
        )
        terminal.write(terminal.style(f"{name:<{_MARGIN}}", "dim") + cells.rstrip())


def _levels(values: Iterable[int]) -> Callable[[int], int]:
    """The shades of pages and images: 0 for no activity, else 1 to 4."""
    marks = shade_limits([*values])
    return lambda value: shade(value, marks)


def _shaded(terminal: Terminal, level: int, width: int = 1) -> str:
    text = _BLOCKS[level] * width if level else _BLOCKS[0].ljust(width)
    if not terminal.colour:
        return text
    return f"\x1b[{_GREENS[level]}m{text}\x1b[0m" if level else terminal.style(text, "dim")
