"""`sess stats`: sums that add up, whatever they are grouped by."""

from __future__ import annotations

import csv
import io
import itertools
import json

import pytest

from sess_schema.queries.stats import GROUPS, percentile

MAIN = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
SUMS = (
    "input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "cache_read_tokens", "cost_nano_usd", "unpriced_requests", "requests", "prompts",
    "tool_calls", "tool_errors",
)  # fmt: skip


def at(text, **more):
    """A record of a given time."""
    return {"timestamp": text, **more}


@pytest.fixture
def spent(world):
    """Two sessions, three models, a subagent, a failed call, two days of New York in one of UTC."""
    t = world.transcript(MAIN)
    counts = itertools.count(1)

    def answer(transcript, when, model="claude-sonnet-4-5-20250929", calls=()):
        number = next(counts)
        usage = {
            "input_tokens": 10 * number,
            "output_tokens": 100 * number,
            "cache_creation_input_tokens": 1000,
            "cache_read_input_tokens": 5000,
            "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600},
        }
        content = [{"type": "text", "text": "done"}] + [
            {"type": "tool_use", "id": call, "name": tool, "input": {"command": "ls"}}
            for call, tool in calls
        ]
        record = transcript.record(
            "assistant",
            {
                "id": f"msg_{number}",
                "role": "assistant",
                "model": model,
                "content": content,
                "stop_reason": "end_turn",
                "usage": usage,
            },
            requestId=f"req_{number}",
            **at(when),
        )
        transcript.append(record)

    t.append(t.prompt("first", gitBranch="main", **at("2026-11-01T03:29:00.000Z")))
    answer(t, "2026-11-01T03:30:00.000Z", calls=[("c1", "Bash"), ("c2", "Read")])
    t.append(t.result("c1", "failed", is_error=True, **at("2026-11-01T03:30:04.000Z")))
    t.append(t.result("c2", "text", **at("2026-11-01T03:30:06.000Z")))
    t.append(t.prompt("second", **at("2026-11-01T04:29:00.000Z")))
    answer(t, "2026-11-01T04:30:00.000Z", model="claude-opus-4-1-20250805")
    agent = world.transcript("agent-a1b2c3", f"-code-demo/{MAIN}/subagents")
    agent.append(agent.prompt("look", isSidechain=True, **at("2026-11-01T04:31:00.000Z")))
    answer(agent, "2026-11-01T04:32:00.000Z", model="a-model-nobody-knows")
    o = world.transcript(OTHER, "-code-other")
    o.append(o.prompt("third", cwd="/code/other", **at("2026-11-08T12:00:00.000Z")))
    answer(o, "2026-11-08T12:00:30.000Z", calls=[("c3", "Bash")])
    o.append(o.result("c3", "fine", **at("2026-11-08T12:00:31.000Z")))
    world.ingest()
    return world


def rows(world, *arguments):
    done = world.run("sess", "stats", "--no-sync", "--json", *arguments, check=0)
    return {row["group"]: row for row in map(json.loads, done.stdout.splitlines())}


def test_the_total_is_one_object_with_the_documented_fields(spent):
    """Tokens, money, requests, prompts, calls and errors, once each."""
    total = rows(spent)["total"]
    assert {name: total[name] for name in SUMS if name != "cost_nano_usd"} == {
        "input_tokens": 100,
        "output_tokens": 1000,
        "cache_write_tokens": 4000,
        "cache_write_1h_tokens": 2400,
        "cache_read_tokens": 20000,
        "unpriced_requests": 1,
        "requests": 4,
        "prompts": 3,
        "tool_calls": 3,
        "tool_errors": 1,
    }
    assert total["sessions"] == 2
    assert total["cost_usd"] == pytest.approx(total["cost_nano_usd"] / 1e9)


@pytest.mark.parametrize("by", GROUPS)
@pytest.mark.parametrize(
    "zone", ["UTC", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
)
def test_groups_add_up_to_the_total(spent, by, zone):
    """In every grouping and every zone, to the last unit."""
    total = rows(spent, "--tz", zone)["total"]
    groups = rows(spent, "--by", by, "--tz", zone).values()
    for name in SUMS:
        assert sum(group[name] for group in groups) == total[name], name


def test_a_day_is_a_day_of_its_zone(spent):
    """One day of UTC is two of New York, where the first of November 2026 has 25 hours."""
    assert {day: row["requests"] for day, row in rows(spent, "--by", "day", "--utc").items()} == {
        "2026-11-01": 3,
        "2026-11-08": 1,
    }
    zone = ("--tz", "America/New_York")
    assert {day: row["requests"] for day, row in rows(spent, "--by", "day", *zone).items()} == {
        "2026-10-31": 1,
        "2026-11-01": 2,
        "2026-11-08": 1,
    }
    assert list(rows(spent, "--by", "week", *zone)) == ["2026-10-26", "2026-11-02"]
    assert list(rows(spent, "--by", "month", *zone)) == ["2026-10", "2026-11"]


def test_since_and_until_cut_by_the_time_of_events(spent):
    """Not by that of sessions."""
    window = ("--utc", "--since", "2026-11-01T04:00:00Z", "--until", "2026-11-01T04:31:30Z")
    total = rows(spent, *window)["total"]
    assert (total["requests"], total["prompts"], total["tool_calls"]) == (1, 1, 0)
    assert total["sessions"] == 1


def test_subagents_count_under_their_session(spent):
    """One session; its subagent can be left out or looked at alone."""
    groups = rows(spent, "--by", "session")
    assert set(groups) == {MAIN, OTHER}
    assert groups[MAIN]["requests"] == 3
    assert rows(spent, "--subagents", "exclude")["total"]["requests"] == 3
    assert rows(spent, "--subagents", "only")["total"]["requests"] == 1
    total = rows(spent, MAIN)["total"]
    assert {name: total[name] for name in SUMS} == {name: groups[MAIN][name] for name in SUMS}


def test_errors_are_charged_to_the_tool_that_was_called(spent):
    """The result of a call names no tool."""
    tools = rows(spent, "--by", "tool")
    assert {tool: (row["tool_calls"], row["tool_errors"]) for tool, row in tools.items()} == {
        "Bash": (2, 1),
        "Read": (1, 0),
        "none": (0, 0),
    }


def test_filters_narrow_the_sums(spent):
    """By project, branch, model and agent."""
    assert rows(spent, "--project", "/code/other")["total"]["requests"] == 1
    assert rows(spent, "--branch", "main")["total"]["prompts"] == 3
    assert rows(spent, "--branch", "m*n")["total"]["prompts"] == 3
    assert rows(spent, "--model", "claude-opus")["total"]["requests"] == 1
    assert rows(spent, "--agent", "claude")["total"]["requests"] > 1


def test_csv_and_markdown_say_the_same(spent):
    """CSV has the fields of JSON; Markdown is for people: sorted as on a screen, in dollars."""
    wanted = rows(spent, "--by", "model")
    done = spent.run("sess", "stats", "--no-sync", "--by", "model", "--csv", check=0)
    table = {row["group"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    assert {group: row["requests"] for group, row in table.items()} == {
        group: str(row["requests"]) for group, row in wanted.items()
    }
    done = spent.run("sess", "stats", "--no-sync", "--by", "model", "--md", check=0)
    head, rule, *lines = done.stdout.splitlines()
    assert head.startswith(
        "| model | input | output | cache written | cache read | cost | sessions"
    )
    assert rule == "|---" + "|---:" * 11 + "|"
    groups = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    assert groups == sorted(wanted, key=lambda name: -wanted[name]["cost_usd"])
    assert all("$" in line or "unknown" in line for line in lines)


def test_two_groups_break_one_down_by_the_other(spent):
    """`--by day,model`: the parts of each day add up to it, on screen and in every format."""
    days = rows(spent, "--by", "day")
    done = spent.run("sess", "stats", "--no-sync", "--by", "day,model", "--json", check=0)
    parts = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(parts[0])[:2] == ["group", "subgroup"]
    for name, day in days.items():
        mine = [part for part in parts if part["group"] == name]
        assert len({part["subgroup"] for part in mine}) == len(mine) > 0
        for field in ("requests", "output_tokens", "cost_nano_usd", "tool_calls"):
            assert sum(part[field] for part in mine) == day[field]
    done = spent.run("sess", "stats", "--no-sync", "--by", "day,model", "--csv", check=0)
    assert len(list(csv.DictReader(io.StringIO(done.stdout)))) == len(parts)
    done = spent.run("sess", "stats", "--no-sync", "--by", "day,model", "--md", check=0)
    assert done.stdout.startswith("| day | model | input |")
    assert len(done.stdout.splitlines()) == 2 + len(parts)
    text = spent.run("sess", "stats", "--no-sync", "--by", "day,model", check=0).stdout
    assert text.startswith("day, model")
    names = [line.split("  ")[0] for line in text.splitlines() if not line.startswith(" ")]
    assert {*days} < {*names}


def test_the_dashboard_names_what_has_no_price(spent):
    """Unknown models are listed, never 0."""
    done = spent.run("sess", "stats", "--no-sync", check=0)
    assert "1 response of unknown price (a-model-nobody-knows)" in done.stdout
    assert "2 sessions, 3 prompts, 4 responses" in done.stdout
    assert "Bash" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "colour"), 'no such group: "colour"'),
        (("--by", "day,colour"), 'no such group: "colour"'),
        (("--by", "day,model,tool"), "--by takes one group, or two: `--by day,model`"),
        (("--tz", "Mars/Olympus"), 'no such time zone: "Mars/Olympus"'),
        (("--subagents", "some"), 'no such value for --subagents: "some"'),
        (("--json", "--csv"), "--json, --csv and --md cannot be combined"),
    ],
)
def test_bad_input_is_one_line(spent, arguments, message):
    """Exit code 2 and a hint."""
    done = spent.run("sess", "stats", "--no-sync", *arguments, check=2)
    assert done.stderr.splitlines()[0] == f"sess: {message}"


@pytest.mark.parametrize(
    ("values", "percent", "wanted"),
    [
        ([], 50, None),
        ([7], 95, 7),
        ([1, 3, 5], 50, 3),
        (list(range(1, 101)), 95, 95),
        ([1, 2], 50, 1),
    ],
)
def test_percentiles_are_nearest_ranks(values, percent, wanted):
    """A value that occurred, never one between two."""
    assert percentile(values, percent) == wanted


@pytest.mark.parametrize("option", ["--agent", "--project", "--branch", "--model"])
def test_bytes_that_are_no_text_match_nothing(world, option):
    t = world.transcript()
    t.append(t.prompt("go"))
    world.ingest()
    done = world.run("sess", "stats", "--json", option, b"\xff".decode(errors="surrogateescape"))
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith(f"sess: no {option.removeprefix('--')} matches")
