"""The calendar of days, and the hours of the week."""

from __future__ import annotations

from sess_cli.export.report import charts
from sess_cli.export.report import days as calendar
from sess_cli.export.report.figures import Figures, busy
from sess_cli.export.report.markup import Table, empty, exact, figure, text, tip
from sess_cli.render import amounts, tallies
from sess_schema.queries.stats import Tally
from sess_schema.queries.views.calendar import streaks


def year(told: Figures) -> str:
    said = "Prompts and responses of each day."
    values = {day: busy(tally) for day, tally in told.days.items()}
    sheets = calendar.sheets(values, told.today)
    if not sheets:
        return figure("calendar", "Calendar", said, empty("No days with work in this time."))
    marks = calendar.limits(list(values.values()))
    tips = {
        day: tip(
            f"{day:%a} {day.isoformat()}",
            [("prompts", f"{tally.prompts:,}"), ("responses", f"{tally.requests:,}"),
             ("tool calls", f"{tally.tool_calls:,}"), ("tokens", f"{tally.tokens:,}"),
             ("cost", tallies.cost(tally))],
        )
        for day, tally in told.days.items()
    }  # fmt: skip
    drawn = "".join(
        (f"<h3>{sheet.name}</h3>" if sheet.name else "")
        + charts.year(sheet, values, marks, tips, f"Calendar {sheet.name}".strip())
        for sheet in sheets
    )
    if min(values) < sheets[-1].first:
        said += f" Before {sheets[-1].first.isoformat()} only in the data."
    table = Table(
        "calendar-data",
        ["day", "prompts", "responses", "tool calls", "sessions"],
        [
            (day.isoformat(), list(map(exact, (tally.prompts, tally.requests, tally.tool_calls,
                                               len(tally.sessions)))))
            for day, tally in sorted(told.days.items())
        ],
    )  # fmt: skip
    shown = (
        f"{charts.shades(marks, 'Prompts and responses')}"
        f'<div class="sheets"><div>{drawn}</div>{_streaks(told)}</div>'
    )
    return figure("calendar", "Calendar", said, shown, table)


def _streaks(told: Figures) -> str:
    current, longest = streaks(told.active_days, told.today)
    busiest = max(told.days, key=lambda day: (busy(told.days[day]), day))
    facts = (
        ("active days", f"{len(told.active_days):,}"),
        ("longest streak", amounts.plural(longest, "day")),
        ("current streak", amounts.plural(current, "day")),
        ("busiest day", f"{busiest:%a} {busiest}"),
    )
    shown = "".join(f"<div><dt>{text(what)}</dt><dd>{text(how)}</dd></div>" for what, how in facts)
    return f'<dl class="facts">{shown}</dl>'


def week(told: Figures) -> str:
    said = "Prompts and responses by weekday and hour."
    values = {place: busy(tally) for place, tally in told.clock.items()}
    if not any(values.values()):
        return figure("clock", "Hours of the week", said, empty("No hours with work in this time."))
    marks = calendar.limits(list(values.values()))
    tips = {}
    for row in range(7):
        for hour in range(24):
            tally = told.clock.get((row, hour), Tally())
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
    return figure("clock", "Hours of the week", said, keys + drawn, table)
