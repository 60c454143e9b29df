"""What the service tells of its limits: kept by the status line, with a forecast."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sess_cli import limits
from sess_cli.logfile import LogFile
from sess_common import times

NOW = 1_790_000_040_000  # a full minute
RESET = NOW + 3 * times.HOUR


@pytest.fixture(autouse=True)
def _home(world, monkeypatch):
    monkeypatch.setenv("SESSIOND_HOME", world.env["SESSIOND_HOME"])
    Path(limits.LOG.path).parent.mkdir(parents=True, exist_ok=True)


def told(used, reset=RESET, name="five_hour"):
    return {"rate_limits": {name: {"used_percentage": used, "resets_at": reset // 1000}}}


def line(world, payload, *options):
    return world.run("sess", "statusline", *options, input=json.dumps(payload), check=0).stdout


def after(minutes, used, reset=RESET):
    now = NOW + minutes * times.MINUTE
    return limits.current(limits.handed(told(used, reset), now), now)


def kept():
    return [entry["used"] for entry in limits.LOG.entries()]


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"rate_limits": None},
        {"rate_limits": [1]},
        {"rate_limits": {"five_hour": 5, "one_hour": {"used_percentage": 1}}},
        {"rate_limits": {"five_hour": {"used_percentage": 5}}},
        {"rate_limits": {"five_hour": {"resets_at": RESET // 1000}}},
        told("5"),
        told(True),
        told(-1),
        told(float("nan")),
        told(float("inf")),
        told(10**30),
        told(5, RESET * 1000),  # not seconds
        told(5, NOW),  # past
        told(5, NOW - times.DAY),
        told(5, NOW + 7 * times.HOUR),  # not within five hours
    ],
)
def test_what_is_missing_past_or_impossible_is_left_out(payload):
    assert [*limits.handed(payload, NOW)] == []


def test_two_readings_make_a_forecast():
    """From 20 to 50 in an hour: full in another 100 minutes, before the reset two hours later."""
    assert [limit.full for limit in after(0, 20)] == [None]
    (limit,) = after(60, 50)
    assert (limit.used, limit.per_hour) == (50, 30)
    assert limit.full == NOW + 160 * times.MINUTE
    assert limit.text(NOW + times.HOUR) == "50%, full in 1h40m"
    (slower,) = after(120, 55)
    assert slower.full is None  # only after the reset
    assert slower.text(NOW + 2 * times.HOUR) == "55%, 1h0m left"


def test_minutes_say_nothing_about_hours():
    after(0, 20)
    (limit,) = after(10, 60)
    assert (limit.per_hour, limit.full) == (None, None)


def test_what_is_used_up_has_no_forecast():
    after(0, 20)
    (limit,) = after(60, 100)
    assert limit.full is None


def test_another_window_begins_anew():
    """Readings before a reset are no part of a rate."""
    after(0, 90)
    (limit,) = after(181, 2, RESET + 5 * times.HOUR)
    assert (limit.used, limit.per_hour) == (2, None)


def test_an_old_reading_of_another_session_is_no_news():
    """Each session tells what it heard last; a reset may be told a second later."""
    after(0, 20)
    after(5, 50, RESET + times.SECOND)
    assert [limit.used for limit in after(6, 30)] == [50]
    assert kept() == [20, 50]


def test_only_whole_points_are_kept():
    for used in (20, 20.4, 20.9, 21, 21):
        after(0, used)
    assert kept() == [20, 21]


def test_without_an_agent_the_last_reading_holds_until_its_reset():
    after(0, 20)
    assert [limit.used for limit in limits.current((), NOW + times.HOUR)] == [20]
    assert limits.current((), RESET) == []
    assert kept() == [20]


def test_a_broken_log_is_no_reason_to_fail():
    lines = ["{", "[]", '{"at": "x"}', '{"name": []}', "[" * 100_000]
    lines.append(f'{{"at": {NOW}, "name": "five_hour", "used": NaN, "reset": {RESET}}}')
    Path(limits.LOG.path).write_text("\n".join(lines) + "\n")
    assert limits.current((), NOW) == []
    assert [limit.used for limit in after(0, 20)] == [20]


def test_the_log_is_private_and_capped(world):
    log = LogFile("some.jsonl", most_bytes=1000, line_bytes=20)
    for number in range(200):
        log.append({"number": number})
        assert Path(log.path).stat().st_size < 1100
    assert Path(log.path).stat().st_mode & 0o777 == 0o600
    assert log.latest(3)[-1] == {"number": 199}
    assert [*log.entries()][-1] == {"number": 199}


def test_a_log_is_never_written_through_a_link(tmp_path):
    target = tmp_path / "elsewhere"
    target.touch()
    Path(limits.LOG.path).symlink_to(target)
    after(0, 20)
    assert target.read_bytes() == b""


def test_the_status_line_tells_the_limits(world):
    """Both of them, on the line, as JSON, and in `sess stats windows`; later without an agent."""
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("done"))
    world.ingest()
    now = times.now_ms()
    resets = {"five_hour": now + 2 * times.HOUR, "seven_day": now + 3 * times.DAY}
    payload = {
        "rate_limits": {
            name: {"used_percentage": 42.7, "resets_at": reset / 1000}
            for name, reset in resets.items()
        }
    }
    for names in (payload, {}):
        text = line(world, names)
        assert " · 5h limit 42%, " in text
        assert " · 7d limit 42%, " in text
    facts = json.loads(line(world, {}, "--json"))["limits"]
    assert set(facts) == {"five_hour", "seven_day"}
    assert facts["five_hour"]["used_percentage"] == 42.7
    assert facts["five_hour"]["points_per_hour"] is facts["five_hour"]["full_at"] is None
    rows = world.run("sess", "stats", "windows", "--json", "--no-sync", check=0).stdout
    told = [row for row in map(json.loads, rows.splitlines()) if row["kind"] == "limit"]
    assert [row["limit"] for row in told] == ["seven_day", "five_hour"]
    shown = world.run("sess", "stats", "windows", "--no-sync", check=0).stdout
    assert "7d limit" in shown
    assert Path(limits.LOG.path).stat().st_mode & 0o777 == 0o600


def test_history_has_the_highest_reading_of_each_window():
    after(0, 20)
    after(60, 50)
    after(181, 2, RESET + 5 * times.HOUR)
    assert [row["used_percentage"] for row in limits.history(None, None)] == [2, 50]
    later = limits.history(NOW + times.HOUR + 1, None)
    assert [row["used_percentage"] for row in later] == [2]
    assert [*limits.history(None, NOW)] == []
