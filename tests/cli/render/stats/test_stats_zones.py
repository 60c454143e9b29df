"""`sess stats --tz`: the days of a zone, also where a question is cut by them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import World

ZONES = ("Asia/Kathmandu", "Australia/Lord_Howe", "America/New_York", "Pacific/Kiritimati", "UTC")


class Hourly(World):
    """Knows when each answer was, and its tokens."""

    moments: list[tuple[datetime, int]]


@pytest.fixture(scope="module")
def hourly(tmp_path_factory):
    """An answer every half hour over two changes of the clocks, each one token more."""
    world = Hourly(tmp_path_factory.mktemp("hourly"))
    t = world.transcript()
    world.moments = []
    # New York: 8 March has 23 hours and 1 November 25; Lord Howe moves by half an hour on
    # 5 April and 4 October.
    for day in ("2026-03-07", "2026-04-04", "2026-10-03", "2026-10-31"):
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
        for number in range(144):
            moment = start + timedelta(minutes=30 * number)
            tokens = len(world.moments) + 1
            world.moments.append((moment, tokens))
            record = t.answer("a", output_tokens=tokens, message_id=f"msg_{tokens}")
            t.append({**record, "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"})
    world.ingest()
    return world


def told(world, *arguments):
    done = world.run("sess", "stats", "--no-sync", "--json", *arguments, check=0)
    return {row["group"]: row["output_tokens"] for row in map(json.loads, done.stdout.splitlines())}


def expected(world, zone):
    """Tokens by day on the clocks of a zone."""
    from zoneinfo import ZoneInfo

    days: dict[str, int] = {}
    for moment, tokens in world.moments:
        day = f"{moment.astimezone(ZoneInfo(zone)):%Y-%m-%d}"
        days[day] = days.get(day, 0) + tokens
    return days


@pytest.mark.parametrize("zone", ZONES)
def test_days_are_those_of_the_zone(hourly, zone):
    assert told(hourly, "--by", "day", "--tz", zone) == expected(hourly, zone)


@pytest.mark.parametrize("zone", ZONES)
def test_a_date_in_since_and_until_is_a_day_of_the_zone(hourly, zone):
    """Also days of 23, 24.5, 23.5 and 25 hours."""
    days = expected(hourly, zone)
    for day in ("2026-03-08", "2026-04-05", "2026-10-04", "2026-11-01"):
        found = told(hourly, "--since", day, "--until", day, "--tz", zone, "--by", "day")
        assert found == {day: days[day]}


def test_a_day_has_as_many_hours_as_the_clocks_say(hourly):
    def hours(day, zone):
        return len(told(hourly, "--since", day, "--until", day, "--tz", zone, "--by", "hour"))

    assert [hours(day, "America/New_York") for day in ("2026-03-08", "2026-11-01")] == [23, 25]


def test_a_time_without_a_zone_is_one_of_the_zone(hourly):
    """02:00 in New York is 07:00 UTC in winter; an offset that is written wins."""
    first = told(hourly, "--since", "2026-03-07T02:00", "--until", "2026-03-07T02:00:00.001",
                 "--tz", "America/New_York")  # fmt: skip
    assert first == {"total": 15}
    other = told(hourly, "--since", "2026-03-07T02:00Z", "--until", "2026-03-07T02:00:00.001Z",
                 "--tz", "America/New_York")  # fmt: skip
    assert other == {"total": 5}


def test_since_and_until_cut_to_the_millisecond(hourly):
    def total(since, until):
        return told(hourly, "--since", since, "--until", until, "--utc")["total"]

    assert total("2026-03-07T00:00:00.001", "2026-03-07T01:00:00.000") == 2
    assert total("2026-03-07T00:00:00.000", "2026-03-07T01:00:00.001") == 1 + 2 + 3
    assert total("2026-03-07T00:30:00.001", "2026-03-07T01:00:00.000") == 0
