"""The calendar of days, and the hours of the week."""

from __future__ import annotations

from sess_cli.export.report import charts
from sess_cli.export.report import days as calendar
from sess_cli.export.report.figures import Figures
from sess_cli.export.report.markup import Table, empty, exact, figure, text, tip
from sess_cli.render import amounts, tallies
from sess_schema.queries.stats import Tally
from sess_schema.queries.views.calendar import busy, streaks


def year(data: Figures) -> str:
    caption = "Prompts and responses per day."
    values = {day: busy(tally) for day, tally in data.days.items()}
    sheets = calendar.sheets(values, data.today)
    if not sheets:
        return figure("calendar", "Calendar", caption, empty("No activity in this period."))
    marks = calendar.limits(list(values.values()))
    tips = {
        day: tip(
            f"{day:%a} {day.isoformat()}",
            [("prompts", f"{tally.prompts:,}"), ("responses", f"{tally.requests:,}"),
             ("tool calls", f"{tally.tool_calls:,}"), ("tokens", f"{tally.tokens:,}"),
             ("cost", tallies.cost(tally))],
        )
        for day, tally in data.days.items()
    }  # fmt: skip
    drawn = "".join(
        (f"<h3>{sheet.name}</h3>" if sheet.name else "")
        + charts.year(sheet, values, marks, tips, f"Calendar {sheet.name}".strip())
        for sheet in sheets
    )
    if min(values) < sheets[-1].first:
        caption += f" Days before {sheets[-1].first.isoformat()} are only in the data."
    table = Table(
        "calendar-data",
        ["day", "prompts", "responses", "tool calls", "sessions"],
        [
            (day.isoformat(), list(map(exact, (tally.prompts, tally.requests, tally.tool_calls,
                                               len(tally.sessions)))))
            for day, tally in sorted(data.days.items())
        ],
    )  # fmt: skip
    shown = (
        f"{charts.shades(marks, 'Prompts and responses')}"
        f'<div class="sheets"><div>{drawn}</div>{_streaks(data)}</div>'
    )
    return figure("calendar", "Calendar", caption, shown, table)


def _streaks(data: Figures) -> str:
    current, longest = streaks(data.active_days, data.today)
    busiest = max(data.days, key=lambda day: (busy(data.days[day]), day))
    facts = (
        ("active days", f"{len(data.active_days):,}"),
        ("longest streak", amounts.plural(longest, "day")),
        ("current streak", amounts.plural(current, "day")),
        ("busiest day", f"{busiest:%a} {busiest}"),
    )
    shown = "".join(f"<div><dt>{text(what)}</dt><dd>{text(how)}</dd></div>" for what, how in facts)
    return f'<dl class="facts">{shown}</dl>'


def week(data: Figures) -> str:
    caption = "Prompts and responses by weekday and hour."
    values = {place: busy(tally) for place, tally in data.clock.items()}
    if not any(values.values()):
        return figure("clock", "Hours of the week", caption, empty("No activity in this period."))
    marks = calendar.limits(list(values.values()))
    tips = {}
    for row in range(7):
        for hour in range(24):
            tally = data.clock.get((row, hour), Tally())
            tips[row, hour] = tip(
                f"{calendar.WEEKDAYS[row]} {hour:02}:00–{hour:02}:59",
                [("prompts", f"{tally.prompts:,}"), ("responses", f"{tally.requests:,}"),
                 ("tool calls", f"{tally.tool_calls:,}")],
            )  # fmt: skip
    table = Table(
        "clock-data",
        ["hour", *calendar.WEEKDAYS, "total"],
        [
            (f"{hour:02}:00", [*(exact(values.get((row, hour), 0)) for row in range(7)),
                               exact(sum(values.get((row, hour), 0) for row in range(7)))])
            for hour in range(24)
        ],
        [*(exact(sum(values.get((row, hour), 0) for hour in range(24))) for row in range(7)),
         exact(sum(values.values()))],
    )  # fmt: skip
    keys = charts.shades(marks, "Prompts and responses")
    drawn = charts.week(values, marks, tips, "Hours of the week")
    return figure("clock", "Hours of the week", caption, keys + drawn, table)
