"""`sess stats calendar`: a year of days, streaks, and the hours of the week."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats import days
from sess_cli.render.stats.days import WEEKDAYS
from sess_cli.render.stats.report import (
    Amount,
    Chart,
    Column,
    Report,
    Section,
    ViewOptions,
    number,
)
from sess_cli.render.tallies import cost, money, tokens
from sess_cli.terminal import Terminal
from sess_common.classes import replace
from sess_schema.queries.stats import Stats
from sess_schema.queries.tally import Tally
from sess_schema.queries.views import calendar

# Distinguishable without colour, too.
_SHADES = "·░▒▓█"
_GREENS = ("", "38;5;22", "38;5;28", "38;5;34", "38;5;46")
_WEEKS = 53
_LABELS = 5  # columns left of the year
_COLUMNS = (
    Column("prompts", "prompts", number),
    Column("requests", "responses", number),
    Column("_tool_calls", "tool calls", number),
    Column("_sessions", "sessions", number),
    Column("tokens", "tokens", number),
    Column("_cost", "cost"),
)
_YEAR = Chart(
    "year", "calendar", "Calendar", "Prompts and responses per day.",
    "No activity in this period.", (Column("day", "day"), *_COLUMNS), ["_busy"],
)  # fmt: skip
_WEEK = Chart(
    "week", "clock", "Hours of the week", "Prompts and responses by weekday and hour.",
    "No activity in this period.", (Column("_slot", "hour"), *_COLUMNS[:3]), ["_busy"],
)  # fmt: skip


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = calendar.read(db, asked)
    today = datetime.fromtimestamp(options.now / 1000, UTC).astimezone(asked.zone).date()
    current, longest = found.streaks(today)
    by_day = [{"day": day.isoformat(), **_facts(tally)} for day, tally in found.days.items()]
    hours = [
        {
            "weekday": WEEKDAYS[weekday],
            "hour": hour,
            **_facts(tally),
            "_slot": days.slot(weekday, hour),
        }
        for (weekday, hour), tally in sorted(found.hours.items())
    ]
    whole = Tally()
    for tally in found.days.values():
        whole.add(tally)
    total = {
        "total": "total",
        "active_days": len(found.days),
        "current_streak": current,
        "longest_streak": longest,
    }
    facts = [
        ("active", f"{amounts.plural(len(found.days), 'day')}{_span(found.days)}"),
        ("streak", f"{amounts.plural(current, 'day')}, longest {longest}"),
    ]
    if found.days:
        most = max(found.days, key=lambda day: (calendar.busy(found.days[day]), day))
        busiest = found.days[most]
        used = f"{money(busiest.cost_nano)}, {tokens(busiest.tokens)}"
        prompts = amounts.plural(busiest.prompts, "prompt")
        facts.append(("busiest", f"{most:%a %Y-%m-%d}: {used}, {prompts}"))
    return Report(
        "calendar",
        [
            Section("total", [total], ()),
            Section("day", by_day, (), charts=[replace(_YEAR, until=today, facts=facts)]),
            Section("hour", hours, (), charts=[replace(_WEEK, total=_facts(whole))]),
        ],
        facts=facts,
        draw=lambda terminal: _draw(terminal, found, today),
    )


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
        "_busy": calendar.busy(tally),
    }


def _span(days: Iterable[date]) -> str:
    ordered = [*days]
    return f", {ordered[0]} to {ordered[-1]}" if ordered else ""


def _draw(terminal: Terminal, found: calendar.Calendar, today: date) -> None:
    if not found.days:
        return
    busy = calendar.busy
    terminal.write("")
    _draw_year(terminal, {day: busy(tally) for day, tally in found.days.items()}, today)
    terminal.write("")
    _draw_hours(terminal, {key: busy(tally) for key, tally in found.hours.items()})
    terminal.write("")
    legend = " ".join(_shaded(terminal, level) for level in range(len(_SHADES)))
    terminal.write(
        terminal.style("less ", "dim")
        + legend
        + terminal.style(" more prompts and responses", "dim")
    )


def _draw_year(terminal: Terminal, values: dict[date, int], today: date) -> None:
    """Weeks as columns, ending with today's or that of the last active day."""
    last = max(values)
    if timedelta(0) <= today - last < timedelta(days=300):
        last = today
    monday = last - timedelta(days=last.weekday())
    weeks = min(_WEEKS, (terminal.width or 80) - _LABELS)
    first = monday - timedelta(weeks=weeks - 1)
    level = _levels(values.values())
    terminal.write(terminal.style(_months(first, weeks), "dim"))
    for weekday, name in enumerate(WEEKDAYS):
        line = ""
        for week in range(weeks):
            day = first + timedelta(weeks=week, days=weekday)
            line += " " if day > last else _shaded(terminal, level(values.get(day, 0)))
        label = name if weekday % 2 == 0 else ""
        terminal.write(terminal.style(f"{label:<{_LABELS}}", "dim") + line.rstrip())


def _months(first: date, weeks: int) -> str:
    """The name of each month above its first whole week."""
    line = " " * _LABELS
    for week in range(weeks):
        day = first + timedelta(weeks=week)
        if day.day <= 7 and week + 3 <= weeks:
            line = line.ljust(_LABELS + week) + f"{day:%b}"
    return line


def _draw_hours(terminal: Terminal, values: dict[tuple[int, int], int]) -> None:
    level = _levels(values.values())
    heads = "".join(f"{hour:<6}" for hour in range(0, 24, 3)).rstrip()
    terminal.write(terminal.style(" " * _LABELS + heads, "dim"))
    for weekday, name in enumerate(WEEKDAYS):
        cells = "".join(
            _shaded(terminal, level(values.get((weekday, hour), 0)), 2) for hour in range(24)
        )
        terminal.write(terminal.style(f"{name:<{_LABELS}}", "dim") + cells.rstrip())


def _levels(values: Iterable[int]) -> Callable[[int], int]:
    """The shades of pages and images: 0 for no activity, else 1 to 4."""
    marks = days.limits([*values])
    return lambda value: days.shade(value, marks)


def _shaded(terminal: Terminal, level: int, width: int = 1) -> str:
    text = _SHADES[level] * width if level else _SHADES[0].ljust(width)
    if not terminal.colour:
        return text
    return f"\x1b[{_GREENS[level]}m{text}\x1b[0m" if level else terminal.style(text, "dim")
