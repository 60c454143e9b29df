"""The views of `sess stats`, each with exact numbers from one small world."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from sess_cli.render.stats import VIEWS
from sess_schema.connection import open_writer

MAIN = "11111111-1111-4111-8111-111111111111"
OPUS = "claude-opus-4-5-20251101"


def told(transcript, when, record):
    """A record of a given moment of the second of March 2026."""
    transcript.append({**record, "timestamp": f"2026-03-02T{when}Z"})


def answer(transcript, when, counts, *calls, model=OPUS):
    """A final response with calls (id, tool, input); counts are fresh, out, 5m, 1h, read."""
    fresh, out, short, long, read = counts
    number = transcript.count + 1
    usage = {
        "input_tokens": fresh,
        "output_tokens": out,
        "cache_creation_input_tokens": short + long,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
    }
    content = [{"type": "text", "text": "so"}] + [
        {"type": "tool_use", "id": key, "name": tool, "input": given} for key, tool, given in calls
    ]
    message = {
        "id": f"msg_{number}",
        "role": "assistant",
        "model": model,
        "stop_reason": "end_turn",
        "content": content,
        "usage": usage,
    }
    told(transcript, when, transcript.record("assistant", message, requestId=f"req_{number}"))


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    """Five prompts: a failed test, a second try, a refusal, a compaction, two windows."""
    from tests.conftest import World

    world = World(tmp_path_factory.mktemp("worked"))
    t = world.transcript(MAIN)
    a, b = "/code/demo/a.py", "/code/demo/b.md"
    edit = {"file_path": a, "old_string": "x = 1\ny", "new_string": "x = 2\ny\nz"}
    told(t, "10:00:00.000", t.prompt("fix it"))
    answer(t, "10:00:02.000", (10, 100, 0, 1000, 0), ("c1", "Edit", edit))
    told(t, "10:00:03.000", t.result("c1", "ok"))
    answer(t, "10:00:05.000", (0, 50, 0, 0, 1000), ("c2", "Bash", {"command": "cd x && pytest"}))
    failed = "Exit code 1\n===== test session starts =====\n1 failed"
    told(t, "10:00:09.000", t.result("c2", failed, is_error=True))
    answer(t, "10:00:12.000", (0, 50, 0, 0, 1000), ("c3", "Edit", edit))
    told(t, "10:00:13.000", t.result("c3", "ok"))
    told(t, "10:30:00.000", t.prompt("write it down"))
    # Half an hour: the cache keeps an hour what it was told to keep an hour.
    write = {"file_path": b, "content": "one\ntwo\nthree\n"}
    answer(t, "10:30:04.000", (0, 60, 3000, 0, 0), ("c4", "Write", write))
    told(t, "10:30:05.000", t.result("c4", "ok"))
    told(t, "10:40:00.000", t.prompt("push it"))
    # Ten minutes: longer than five.
    answer(
        t,
        "10:40:01.000",
        (0, 40, 2000, 0, 100),
        ("c5", "Bash", {"command": "git push"}),
        ("c6", "mcp__web__get", {"url": "http://localhost"}),
    )
    refusal = "The user doesn't want to proceed with this tool use."
    told(t, "10:40:05.000", t.result("c5", refusal, is_error=True))
    told(
        t,
        "10:41:00.000",
        {
            **t.record("system", None),
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "compactMetadata": {"trigger": "auto", "preTokens": 155000},
        },
    )
    # Exactly five hours after the window began, and a millisecond later.
    told(t, "14:59:59.000", t.prompt("go on"))
    answer(t, "15:00:00.000", (500, 10, 0, 0, 0))
    told(t, "15:00:00.000", t.prompt("and on"))
    answer(t, "15:00:00.001", (600, 20, 0, 0, 0), model="a-model-nobody-knows")
    world.ingest()
    return world


def rows(world, *arguments, check=0):
    done = world.run("sess", "stats", *arguments, "--no-sync", "--utc", "--json", check=check)
    return [json.loads(line) for line in done.stdout.splitlines()]


def kind(found, name):
    return [row for row in found if row["kind"] == name]


def picked(row, *names):
    return tuple(row[name] for name in names)


def test_tools(worked):
    """Denied calls and calls without a result are in no rate; MCP tools have a server."""
    found = rows(worked, "tools", "--detail")
    names = ("calls", "errors", "error_rate", "denied", "orphans", "p50_ms", "max_ms")
    assert {row["tool"]: picked(row, *names) for row in kind(found, "tool")} == {
        "Edit": (2, 0, 0.0, 0, 0, 1000, 1000),
        "Bash": (2, 1, 1.0, 1, 0, 4000, 4000),
        "Write": (1, 0, 0.0, 0, 0, 1000, 1000),
        "mcp__web__get": (1, 0, None, 0, 1, None, None),
    }
    assert [picked(row, "server", "calls") for row in kind(found, "server")] == [("web", 1)]
    assert {row["program"]: row["calls"] for row in kind(found, "program")} == {
        "pytest": 1,
        "git": 1,
    }


def test_errors_link_to_their_messages(worked):
    """The class names its newest event, and `sess show` opens it."""
    found = rows(worked, "errors")
    (row,) = kind(found, "class")
    assert picked(row, "class", "errors", "share", "tools", "session") == (
        "tests failed", 1, 1.0, ["Bash"], MAIN,
    )  # fmt: skip
    shown = worked.run("sess", "show", f"{MAIN}#{row['event']}", "--json", "--no-sync", check=0)
    assert "1 failed" in json.loads(shown.stdout)["output"]
    assert [picked(row, "day", "errors") for row in kind(found, "day")] == [("2026-03-02", 1)]
    (line,) = rows(worked, "errors", "--explain", "Tests failed")
    assert picked(line, "session", "event", "class") == (MAIN, row["event"], "tests failed")
    assert rows(worked, "errors", "--explain", "no such class", check=1) == []


def test_rules_of_ones_own_count_first(worked):
    """`errors.toml` beside `config.toml`."""
    path = worked.state / "errors.toml"
    path.write_text("[[rule]]\nname = 'red'\npattern = '1 failed'\n")
    try:
        assert [row["class"] for row in kind(rows(worked, "errors"), "class")] == ["red"]
        path.write_text("[[rule]]\nname = 'red'\n")
        done = worked.run("sess", "stats", "errors", "--no-sync", check=2)
        assert "a rule needs a name and a pattern" in done.stderr.splitlines()[0]
    finally:
        path.unlink()


def test_latency(worked):
    """From a prompt or the last result to the first line; tokens a second of whole answers."""
    found = rows(worked, "latency")
    (opus, _) = kind(found, "model")
    # 2 s, 2 s, 3 s, 4 s, 1 s and 1 s.
    assert picked(opus, "model", "responses", "p50_ms", "p90_ms", "max_ms") == (
        OPUS, 6, 2000, 4000, 4000,
    )  # fmt: skip
    assert opus["tokens_per_second"] == pytest.approx(310 / 13)
    bash = next(row for row in kind(found, "tool") if row["tool"] == "Bash")
    assert picked(bash, "calls", "p99_ms", "sum_ms") == (1, 4000, 4000)


def test_cache(worked):
    """One of two rewrites came after the cache had forgotten; what it saved is the table's."""
    found = rows(worked, "cache")
    (total,) = kind(found, "total")
    assert picked(total, "cache_read_tokens", "expired_rewrites", "expired_tokens") == (
        2100, 1, 2000,
    )  # fmt: skip
    assert total["hit_ratio"] == pytest.approx(2100 / (1110 + 6000 + 2100))
    # Opus 4.5: 5 dollars a million in, 0.5 from cache, 6.25 and 10 into it.
    assert total["saved_nano_usd"] == 2100 * 4500 - 5000 * 1250 - 1000 * 5000


def test_context(worked):
    """The largest prompt, and what it was compacted at."""
    found = rows(worked, "context")
    (session,) = kind(found, "session")
    assert picked(session, "peak_tokens", "window_tokens", "compactions", "compaction_tokens") == (
        3000, 200_000, 1, [155_000],
    )  # fmt: skip
    assert picked(kind(found, "total")[0], "compactions", "p50_compaction_tokens") == (1, 155_000)


def test_edits(worked):
    """The first prompt edited its file again after the test; the second did not."""
    found = rows(worked, "edits")
    names = ("edits", "files", "lines_added", "lines_removed", "edit_turns", "one_shot_turns")
    assert picked(kind(found, "total")[0], *names) == (3, 2, 7, 2, 2, 1)
    assert {row["suffix"]: row["edits"] for row in kind(found, "suffix")} == {".py": 2, ".md": 1}


def test_interruptions(worked):
    """A refused call interrupts its turn."""
    (total,) = kind(rows(worked, "interruptions"), "total")
    names = ("turns", "interrupted_turns", "markers", "refusals", "turns_without_tools_share")
    assert picked(total, *names) == (5, 1, 0, 1, 0.4)


def test_windows_begin_as_ccusage_says(worked):
    """A response exactly five hours after the start is in the window, the next is not."""
    windows = kind(rows(worked, "windows"), "window")
    assert [picked(row, "start", "requests", "active") for row in windows] == [
        ("2026-03-02T15:00:00.000Z", 1, False),
        ("2026-03-02T10:00:00.000Z", 6, False),
    ]


def test_a_budget_that_is_exceeded_exits_with_6(world):
    """Of tokens spent now; below the limit it is 0."""
    t = world.transcript()
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z"
    t.append(t.prompt("x", timestamp=now), t.answer("y", timestamp=now))
    world.ingest()
    (spent, *_) = rows(world, "windows", "--budget", "0.01k/week", check=6)
    assert picked(spent, "kind", "unit", "limit", "used", "exceeded") == (
        "budget", "tokens", 10.0, 13.0, True,
    )  # fmt: skip
    (spent, window) = rows(world, "windows", "--budget", "13/month")
    assert picked(spent, "unit", "limit", "exceeded") == ("usd", 13.0, False)
    assert window["active"] is True


def test_a_reset_that_the_service_told_is_told(world):
    """From its own words, while it is still to come."""
    t = world.transcript()
    now = datetime.now(UTC)
    soon = int(now.timestamp()) + 3600
    record = t.answer(
        f"Claude AI usage limit reached|{soon}", timestamp=f"{now:%Y-%m-%dT%H:%M:%S}.000Z"
    )
    t.append({**record, "isApiErrorMessage": True})
    world.ingest()
    (reset,) = kind(rows(world, "windows"), "reset")
    assert reset["reset"] == f"{datetime.fromtimestamp(soon, UTC):%Y-%m-%dT%H:%M:%S}.000Z"


def test_the_calendar_is_of_the_zone(worked):
    """Half past ten in the morning of UTC is the evening in Tokyo."""
    done = worked.run(
        "sess", "stats", "calendar", "--no-sync", "--json", "--tz", "Asia/Tokyo", check=0
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [picked(row, "day", "prompts", "requests") for row in kind(found, "day")] == [
        ("2026-03-02", 4, 5),
        ("2026-03-03", 1, 2),
    ]
    hours = [picked(row, "weekday", "hour", "requests") for row in kind(found, "hour")]
    assert hours == [("Mon", 19, 5), ("Mon", 23, 0), ("Tue", 0, 2)]
    assert picked(kind(found, "total")[0], "active_days", "longest_streak") == (2, 2)


def test_files_and_who_touched_them(worked):
    """By path or by name."""
    found = rows(worked, "files")
    assert [picked(row, "path", "edits", "writes", "sessions") for row in found] == [
        ("/code/demo/a.py", 2, 0, 1),
        ("/code/demo/b.md", 0, 1, 1),
    ]
    (session,) = rows(worked, "files", "a.py")
    assert picked(session, "session", "edits", "paths") == (MAIN, 2, ["/code/demo/a.py"])
    assert rows(worked, "files", "c.py", check=1) == []


@pytest.mark.parametrize(
    ("by", "group"), [("model", OPUS), ("tool", "Edit"), ("day", "2026-03-02"), ("project", None)]
)
def test_an_explanation_adds_up_to_its_number(worked, by, group):
    """To the last token and nano-dollar."""
    group = group or "/code/demo"
    sums = {row["group"]: row for row in rows(worked, "--by", by)}
    lines = rows(worked, "--by", by, "--explain", group)
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cost_nano_usd"):
        assert sum(line[name] or 0 for line in lines) == sums[group][name]
    for name, kinds in (("requests", "response"), ("prompts", "prompt"), ("tool_calls", "call")):
        assert sum(line["type"] == kinds for line in lines) == sums[group][name]


def test_one_session_in_the_terms_of_old(worked):
    """Title, rule, numbers, and the tools in a table of fixed columns, by name."""
    done = worked.run("sess", "stats", MAIN, "--no-sync", "--utc", check=0)
    lines = done.stdout.splitlines()
    assert lines[0] == "fix it"
    assert lines[2] == "=" * 50
    assert "Duration:        5h0m" in lines
    assert "Active Time:     16m19s" in lines
    assert "Tool Time:       7.0s" in lines
    assert "Success Rate:    80.0%" in lines  # four of five; one was denied
    at = lines.index("Tool Breakdown")
    assert lines[at + 1 : at + 6] == [
        "-" * 48,
        "Tool            Calls Errors        Avg        Max",
        "-" * 48,
        "Bash                2      1       4.0s       4.0s",
        "Edit                2      0       1.0s       1.0s",
    ]
    _, session = rows(worked, MAIN)
    assert picked(session, "group", "duration_ms", "tool_ms", "success_rate") == (
        "session", 18_000_001, 7000, pytest.approx(4 / 5),
    )  # fmt: skip
    assert [one["class"] for one in session["failures"]] == ["tests failed"]


def test_prices_that_nobody_has_listed_for_long_are_named(world):
    """Those that were used; a price of one's own has no date."""
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("done"))
    world.run("sessiond", "sync", check=0)
    said = "prices of claude-opus-4-5 are older than half a year (2024-01-31)"

    def note(dates):
        with closing(open_writer(world.state / "index.db")) as db:
            db.execute("UPDATE facts SET value = ? WHERE name = 'prices'", (json.dumps(dates),))
        return said in world.run("sess", "stats", "--no-sync", check=0).stdout

    day = f"{datetime.now(UTC):%Y-%m-%d}"
    assert note({"": "2024-01-31"})
    assert note({"": day, "claude-opus-4-5": "2024-01-31"})
    assert not note({"": day, "gpt-5": "2024-01-31"})
    assert not note({"": "2024-01-31", "claude-opus-4-5": ""})


def test_calls_that_were_all_denied_are_no_success(world):
    t = world.transcript()
    t.append(t.prompt("go"))
    for number in range(2):
        refusal = "The user doesn't want to proceed with this tool use."
        t.append(t.call(f"c{number}"), t.result(f"c{number}", refusal, is_error=True))
    world.ingest()
    _, session = rows(world, "last")
    assert session["success_rate"] == 0.0
    t.append(t.call("ok"), t.result("ok", "done"))
    world.ingest()
    _, session = rows(world, "last")
    assert session["success_rate"] == 1.0


def test_the_numbers_of_old(world):
    """Three of five calls succeed: 0.6; 2.1 s of tools, 7 events; mean and maximum of each."""
    t = world.transcript()
    t.append(t.prompt("go", timestamp="2026-02-01T10:00:00.000Z"))
    taken = {"Bash": [(100, False), (300, True), (500, False)], "Read": [(400, True), (800, False)]}
    clock = datetime(2026, 2, 1, 10, 1, tzinfo=UTC)
    for tool, calls in taken.items():
        for number, (milliseconds, failed) in enumerate(calls):
            begun, ended = clock, clock + timedelta(milliseconds=milliseconds)
            clock = ended + timedelta(seconds=1)
            key = f"{tool}{number}"
            call = {**t.call(key, tool, command="x"), "timestamp": begun.isoformat()}
            t.append(call, t.result(key, "y", is_error=failed, timestamp=ended.isoformat()))
    t.append(t.answer("done", timestamp=clock.isoformat()))
    world.ingest()
    _, session = rows(world, "last")
    assert picked(session, "success_rate", "tool_ms", "events") == (0.6, 2100, 7)
    names = ("tool", "calls", "errors", "mean_ms", "max_ms")
    assert [picked(tool, *names) for tool in session["tools"]] == [
        ("Bash", 3, 1, 300, 500),
        ("Read", 2, 1, 600, 800),
    ]


def test_without_counts_tokens_are_estimated_and_say_so(world):
    """Four characters each; an empty session has none."""
    t = world.transcript()
    t.append(t.prompt("p" * 401), t.record("assistant", {"role": "assistant", "content": "a" * 40}))
    world.ingest()
    lines = world.run("sess", "stats", "last", "--no-sync", check=0).stdout.splitlines()
    assert "Est. Input Tk:   100" in lines
    assert "Est. Output Tk:  10" in lines
    assert "Success Rate:    0.0%" in lines
    assert "Tool Breakdown" not in lines


def test_filters_apply_to_every_view(worked):
    """Nothing of another project, another model or a later time, and that is said."""
    for view in VIEWS:
        for filters in (("--project", "/code/other"), ("--since", "2026-04-01")):
            done = worked.run("sess", "stats", view, *filters, "--no-sync", check=1)
            assert "Bash" not in done.stdout
            assert OPUS not in done.stdout
    (total,) = kind(rows(worked, "interruptions", "--model", "a-model"), "total")
    assert total["turns"] == 0
    (total,) = kind(rows(worked, "edits", "--model", OPUS), "total")
    assert total["edits"] > 0
    assert [row["model"] for row in kind(rows(worked, "latency", "--model", OPUS), "model")] == [
        OPUS
    ]
    (row,) = rows(worked, "cache", "--model", "a-model")[:1]
    assert picked(row, "model", "requests") == ("a-model-nobody-knows", 1)


@pytest.mark.parametrize("view", VIEWS)
def test_csv_and_markdown_tell_the_same_rows(worked, view):
    """As many as JSON does, in one table or one for each kind."""
    wanted = rows(worked, view)
    done = worked.run("sess", "stats", view, "--no-sync", "--utc", "--csv", check=0)
    table = [*csv.DictReader(io.StringIO(done.stdout))]
    assert [row["kind"] for row in table] == [row["kind"] for row in wanted]
    done = worked.run("sess", "stats", view, "--no-sync", "--utc", "--md", check=0)
    lines = [line for line in done.stdout.splitlines() if line]
    assert len(lines) == len(wanted) + 2 * len({row["kind"] for row in wanted})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("colour",), 'no such view or session: "colour"'),
        (("tools", "x"), 'unexpected argument "x"'),
        (("tools", "--by", "day"), "--by cannot be combined with `tools`"),
        (("cache", "--detail"), "--detail works only with `sess stats tools`"),
        (("--budget", "5"), "--budget works only with `sess stats windows`"),
        (("windows", "--budget", "5/year"), 'invalid budget: "5/year"'),
        (("cache", "--explain", "x"), "--explain does not work with `cache`"),
        (("--explain", "x"), '--explain "x" needs --by'),
        (("--watch",), "--watch needs a terminal"),
        (
            ("--watch", "--json"),
            "--watch cannot be combined with --by, --explain or an output format",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(worked, arguments, message):
    """Exit code 2 and a hint where there is one."""
    done = worked.run("sess", "stats", "--no-sync", *arguments, check=2)
    assert done.stderr.splitlines()[0] == f"sess: {message}"
