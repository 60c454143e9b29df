"""Times as people write them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sess_common import times
from sess_common.errors import SessError

NOW = 1_771_597_800_000  # 2026-02-20T14:30:00Z
DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-02-20T14:30:00.000Z"),
        ("90s", "2026-02-20T14:28:30.000Z"),
        ("30m", "2026-02-20T14:00:00.000Z"),
        ("36h", "2026-02-19T02:30:00.000Z"),
        ("7d", "2026-02-13T14:30:00.000Z"),
        ("2w", "2026-02-06T14:30:00.000Z"),
        ("2 weeks ago", "2026-02-06T14:30:00.000Z"),
        ("1mo", "2026-01-21T14:30:00.000Z"),
        ("today", "2026-02-20T00:00:00.000Z"),
        ("Yesterday", "2026-02-19T00:00:00.000Z"),
        ("2026-02-20", "2026-02-20T00:00:00.000Z"),
        ("2026-02", "2026-02-01T00:00:00.000Z"),
        ("2026", "2026-01-01T00:00:00.000Z"),
        ("2026-02-20T14:30", "2026-02-20T14:30:00.000Z"),
        ("2026-02-20 14:30:05.123", "2026-02-20T14:30:05.123Z"),
        ("2026-02-20T14:30:00Z", "2026-02-20T14:30:00.000Z"),
        ("2026-02-20T14:30:00+02:00", "2026-02-20T12:30:00.000Z"),
        ("friday", "2026-02-20T00:00:00.000Z"),
        ("last friday", "2026-02-13T00:00:00.000Z"),
        ("Monday", "2026-02-16T00:00:00.000Z"),
        ("sat", "2026-02-14T00:00:00.000Z"),
        ("this week", "2026-02-16T00:00:00.000Z"),
        ("last week", "2026-02-09T00:00:00.000Z"),
        ("last-week", "2026-02-09T00:00:00.000Z"),
        ("this month", "2026-02-01T00:00:00.000Z"),
        ("last month", "2026-01-01T00:00:00.000Z"),
        ("this year", "2026-01-01T00:00:00.000Z"),
        ("last year", "2025-01-01T00:00:00.000Z"),
        ("december", "2025-12-01T00:00:00.000Z"),
        ("feb", "2026-02-01T00:00:00.000Z"),
        ("last february", "2025-02-01T00:00:00.000Z"),
        ("feb 20", "2026-02-20T00:00:00.000Z"),
        ("21 Feb", "2025-02-21T00:00:00.000Z"),
        ("march 3, 2024", "2024-03-03T00:00:00.000Z"),
        ("last 7 days", "2026-02-13T14:30:00.000Z"),
        ("12:00", "2026-02-20T12:00:00.000Z"),
        ("16:00", "2026-02-19T16:00:00.000Z"),
        ("yesterday 9:30", "2026-02-19T09:30:00.000Z"),
        ("monday 09:30:15", "2026-02-16T09:30:15.000Z"),
        ("9am", "2026-02-20T09:00:00.000Z"),
        ("5pm", "2026-02-19T17:00:00.000Z"),
        ("yesterday 5:30 PM", "2026-02-19T17:30:00.000Z"),
        ("12am", "2026-02-20T00:00:00.000Z"),
        ("monday 12pm", "2026-02-16T12:00:00.000Z"),
        ("noon", "2026-02-20T12:00:00.000Z"),
        ("midnight", "2026-02-20T00:00:00.000Z"),
        ("yesterday noon", "2026-02-19T12:00:00.000Z"),
        ("an hour ago", "2026-02-20T13:30:00.000Z"),
        ("a week ago", "2026-02-13T14:30:00.000Z"),
        ("past week", "2026-02-13T14:30:00.000Z"),
        ("february 2025", "2025-02-01T00:00:00.000Z"),
        ("feb 29", "2024-02-29T00:00:00.000Z"),
    ],
)
def test_since_is_the_first_moment_that_the_words_name(text, expected):
    """Every documented way to write a time means what it says."""
    assert times.iso(times.since(text, utc=True, now=NOW)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-02-20", "2026-02-21T00:00:00.000Z"),
        ("yesterday", "2026-02-20T00:00:00.000Z"),
        ("2026-02", "2026-03-01T00:00:00.000Z"),
        ("2025", "2026-01-01T00:00:00.000Z"),
        ("7d", "2026-02-13T14:30:00.000Z"),
        ("monday", "2026-02-17T00:00:00.000Z"),
        ("last week", "2026-02-16T00:00:00.000Z"),
        ("last month", "2026-02-01T00:00:00.000Z"),
        ("this month", "2026-03-01T00:00:00.000Z"),
        ("last year", "2026-01-01T00:00:00.000Z"),
        ("feb 20", "2026-02-21T00:00:00.000Z"),
        ("december 2025", "2026-01-01T00:00:00.000Z"),
        ("12:00", "2026-02-20T12:00:00.000Z"),
    ],
)
def test_until_a_day_includes_the_day(text, expected):
    """`--until 2026-02-20` does not leave out what happened on that day."""
    assert times.iso(times.until(text, utc=True, now=NOW)) == expected


def test_dates_are_local_unless_told_otherwise(monkeypatch):
    """A date without a zone begins at local midnight, by the clock of that season."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert times.iso(times.since("2026-02-20")) == "2026-02-19T23:00:00.000Z"
        assert times.iso(times.since("2026-07-20")) == "2026-07-19T22:00:00.000Z"
        assert times.since("2026-02-20", utc=True) == times.since("2026-02-20T00:00Z")
        assert times.until("2026-03-29") - times.since("2026-03-29") == 23 * DAY // 24
        assert f"{times.local(NOW):%H:%M}" == "15:30"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "7x",
        "25:00",
        "feb 31",
        "last",
        "next week",
        "2026-13-01",
        "0000",
        "99999-01-01",
        "-1d",
    ],
)
def test_what_is_no_time_is_a_usage_error(text):
    """The message quotes the words, the hint shows what would do, the exit code is 2."""
    with pytest.raises(SessError) as caught:
        times.since(text)
    assert caught.value.message == f'invalid time: "{text}"'
    assert caught.value.code == 2
    assert "7d, 36h, today" in (caught.value.hint or "")


WORDS = (
    *("now", "today", "yesterday", "last", "this", "week", "month", "friday", "feb", "december"),
    *("2026", "0001", "9999", "02", "12", "31", "7", "0", "-", ":", ".", ",", "T", "Z", "+02:00"),
    *("d", "h", "mo", "am", "ago", "days", " ", "09:30", "2026-02-20"),
)


def test_any_text_is_a_time_or_a_usage_error():
    """No words end in a traceback, and no time ends before it begins."""
    spans = []

    @settings(max_examples=300, derandomize=True, deadline=None)
    @given(st.text() | st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("".join))
    def checked(text):
        try:
            start, end = times.span(text, now=NOW)
        except SessError:
            return
        assert start <= end
        spans.append(text)

    checked()
    assert len(set(spans)) > 10


@pytest.mark.parametrize("moment", [None, -1, 1 << 62])
def test_what_no_calendar_has_is_no_time(moment):
    """Absurd stamps become null in JSON."""
    assert times.iso(moment) is None
