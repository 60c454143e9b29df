"""Axes, marks and calendars of the report of `sess stats --html`."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from sess_cli.export.report import charts
from sess_cli.render.stats import calendar, sums

NEW_YORK = ZoneInfo("America/New_York")


def test_columns_of_an_hour_are_hours_of_real_time():
    """When clocks go back, one hour occurs twice, with two offsets."""
    names = ["2025-11-02 00:00-0400", "2025-11-02 03:00-0500"]
    axis = sums.axis_of(names, None, None, NEW_YORK)
    assert axis.step == "hour"
    assert axis.columns == [
        "2025-11-02 00:00-0400", "2025-11-02 01:00-0400", "2025-11-02 01:00-0500",
        "2025-11-02 02:00-0500", "2025-11-02 03:00-0500",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("last", "step", "count"),
    [
        ("2025-01-03", "hour", 72),
        ("2025-04-01", "day", 91),
        ("2026-06-01", "week", 75),
        ("2030-01-01", "month", 61),
        ("2060-01-01", "year", 36),
        ("9000-01-01", "year", 2),
    ],
)
def test_a_longer_time_has_longer_columns(last, step, count):
    hours = ["2025-01-01 00:00+0000", f"{last} 23:00+0000"]
    axis = sums.axis_of(hours, None, None, UTC)
    assert (axis.step, len(axis.columns)) == (step, count)
    assert {sums.column_of(axis.step, hour) for hour in hours} <= set(axis.columns)
    assert len(axis.marks()) <= 6


def test_the_axis_covers_the_time_that_was_asked_for():
    since = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
    until = int(datetime(2026, 1, 11, tzinfo=UTC).timestamp() * 1000)
    axis = sums.axis_of(["2026-01-05 10:00+0000"], since, until, UTC)
    assert axis.columns == [f"2026-01-{day:02}" for day in range(1, 11)]


@pytest.mark.parametrize(
    ("most", "marks"),
    [
        (7.5, [0, 2, 4, 6, 8]),
        (600, [0, 200, 400, 600]),
        (0.03, [0, 0.01, 0.02, 0.03]),
        (1, [0, 0.5, 1]),
        (0, [0, 1]),
    ],
)
def test_marks_of_an_axis_are_round_and_begin_at_zero(most, marks):
    assert charts.round_ticks(most) == pytest.approx(marks)


def test_numbers_of_an_axis():
    assert [charts.money_label(value) for value in (0, 0.005, 0.25, 2.5, 40, 1500)] == [
        "$0", "$0.005", "$0.25", "$2.5", "$40", "$1.5k",
    ]  # fmt: skip


def test_every_span_is_in_the_histogram_once():
    spans = [0, 1, 2, 999, 1000, 59_999, 3_600_000]
    marks = charts.span_ticks(spans[-1])
    assert marks[-1] == 3_600_000
    assert sum(charts.histogram(spans, marks[-1], 48)) == len(spans)


def test_a_year_is_one_sheet_and_more_are_calendar_years():
    today = date(2026, 6, 4)
    (one,) = calendar.sheets({date(2025, 6, 1): 1, today: 1}, today)
    assert one.first <= date(2025, 6, 1)
    assert one.last == today
    many = calendar.sheets({date(2023, 5, 1): 1, date(2026, 1, 1): 1}, today)
    assert [sheet.name for sheet in many] == ["2026", "2023"]


def test_shades_follow_what_days_have():
    marks = calendar.shade_limits([0, 1, 2, 3, 4, 5, 6, 7, 8])
    assert marks == [2, 4, 6]
    assert [calendar.shade(value, marks) for value in (0, 1, 2, 3, 6, 7, 100)] == [
        0,
        1,
        1,
        2,
        3,
        4,
        4,
    ]
    assert calendar.legend_labels(marks) == [
        (0, "0"),
        (1, "1–2"),
        (2, "3–4"),
        (3, "5–6"),
        (4, "7+"),
    ]
    assert calendar.shade(5, calendar.shade_limits([5, 5])) == 4
