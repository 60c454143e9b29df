"""docs/numbers.md: one session has one set of numbers, wherever they are printed."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from tests.conftest import TEN_O_CLOCK

MAIN = "11111111-1111-4111-8111-111111111111"
FORK = "22222222-2222-4222-8222-222222222222"
REFUSED = "The user doesn't want to proceed with this tool use."

# What the definitions make of the records below.
DEFINED = {
    MAIN: {
        "events": 10,  # its own; the result without a call is one
        "prompts": 2,  # not what the subagent was asked
        "tool_calls": 5,  # four of its own, one of the subagent
        "tool_errors": 2,
        "tool_denied": 1,
        "duration_ms": 630_000,  # 10:00:04, which stands second in the file, to the last result
        "active_ms": 450_000,
        "user_ms": 306_075,  # 6 s, five minutes of eight, and the 75 ms after the note
        "agent_ms": 143_925,
    },
    FORK: {
        "events": 8,  # six of them copies
        "prompts": 2,
        "tool_calls": 3,
        "tool_errors": 1,
        "tool_denied": 1,
        "duration_ms": 3_601_000,
        "active_ms": 391_000,
        "user_ms": 306_000,
        "agent_ms": 85_000,
    },
}
COUNTS = ("prompts", "tool_calls", "tool_errors", "tool_denied")
TIMES = ("active_ms", "agent_ms", "user_ms")
SAID = {MAIN: ("10m30s", "7m30s"), FORK: ("1h0m", "6m31s")}  # duration, active time


def at(seconds):
    moment = TEN_O_CLOCK + timedelta(milliseconds=round(1000 * seconds))
    return {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"}


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A failed call, a refused one, a subagent, a queued prompt, an early record, a fork."""
    from tests.conftest import World  # one world for the whole module

    world = World(tmp_path_factory.mktemp("numbers"))
    t = world.transcript(MAIN)
    shared = [
        t.prompt("fix it") | at(10),
        t.record("system", None, subtype="informational", content="a note") | at(4),
        t.call("c1", command="make") | at(20),
        t.result("c1", "no rule", is_error=True) | at(25),
        t.call("c2", command="rm -r /") | at(30),
        t.result("c2", REFUSED, is_error=True) | at(40),
        t.call("c3", "Task", subagent_type="Explore", prompt="look") | at(50),
        t.result("c3", "found", toolUseResult={"agentId": "abc12345"}) | at(80),
        t.answer("done so far") | at(90),
    ]
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "go on"}
    t.append(
        *shared,
        queued | {"sessionId": MAIN} | at(570),
        t.prompt("go on") | at(570.075),
        t.result("nobody", "a result without its call") | at(575),
        t.call("c4", command="make test") | at(580),
        t.result("c4", "ok") | at(634),
    )
    agent = world.transcript("agent-abc12345", f"-code-demo/{MAIN}/subagents")
    more = {"isSidechain": True, "sessionId": MAIN}
    agent.append(
        agent.prompt("look", **more) | at(52),
        agent.call("s1", "Read", file_path="/code/demo/a.py") | more | at(55),
        agent.result("s1", "no such file", is_error=True, **more) | at(60),
        agent.answer("found", **more) | at(70),
    )
    fork = world.transcript(FORK)
    fork.append(
        *shared,
        fork.prompt("another way") | at(3600),
        fork.answer("as you like") | at(3605),
    )
    world.ingest()
    return world


def run(world, *arguments):
    return world.run("sess", *arguments, "--no-sync", check=0).stdout


def objects(world, *arguments):
    return [json.loads(line) for line in run(world, *arguments, "--json").splitlines()]


def picked(found, names):
    return {name: found[name] for name in names}


@pytest.mark.parametrize("session", DEFINED)
def test_json_of_one_session_agrees_with_the_definitions(counted, session):
    """stats ID, stats --session, list and export json."""
    wanted = DEFINED[session]
    total, alone = objects(counted, "stats", session)
    (same,) = objects(counted, "stats", "--session", session)
    assert same == total
    assert picked(total, (*COUNTS, *TIMES)) == picked(wanted, (*COUNTS, *TIMES))
    names = ("duration_ms", *TIMES, "events")
    assert picked(alone, names) == picked(wanted, names)
    listed = {row["session"]: row for row in objects(counted, "list")}[session]
    assert picked(listed, wanted) == wanted
    document = json.loads(run(counted, "export", "json", session, "-o", "-", "--no-redact"))
    assert document["session"] == listed


@pytest.mark.parametrize("session", DEFINED)
def test_what_show_lists_is_what_is_counted(counted, session):
    """Events as many as there are; calls but for results that have none."""
    wanted = DEFINED[session]
    events = objects(counted, "show", session)
    assert len(events) == wanted["events"]
    calls = [one for one in events if one["type"] == "tool_use" and one["unjoined"] is None]
    subagents = 1 if session == MAIN else 0  # its calls are in its own transcript
    assert len(calls) == wanted["tool_calls"] - subagents
    assert sum(one["type"] == "user" for one in events) == wanted["prompts"]


@pytest.mark.parametrize("session", DEFINED)
def test_texts_about_one_session_agree_with_the_definitions(counted, session):
    """stats ID, show, Markdown, a page, pages."""
    wanted, (duration, active) = DEFINED[session], SAID[session]
    prompts, calls, failed, denied = (wanted[name] for name in COUNTS)
    lines = run(counted, "stats", session, "--utc").splitlines()
    assert {
        f"Duration:        {duration}",
        f"Active Time:     {active}",
        f"Events:          {wanted['events']}",
        f"Prompts:         {prompts}",
        f"Tool Calls:      {calls}",
        f"Outcomes:        {failed} failed, {denied} denied",
    } <= set(lines)
    shown = run(counted, "show", session, "--utc", "--no-pager")
    outcomes = f"{failed} failed, {denied} denied"
    assert f"{prompts} prompts, {calls} tool calls ({outcomes}), {wanted['events']} events" in shown
    assert f"({duration}, {active} active)" in shown
    document = run(counted, "export", "md", session, "-o", "-", "--utc")
    assert f"- {prompts} prompts, {calls} tool calls, {outcomes}\n" in document
    assert f"({duration}, {active} active)" in document
    page = run(counted, "export", "html", session, "-o", "-", "--utc")
    assert facts(page) == {
        "Duration": duration,
        "Prompts": str(prompts),
        "Tool calls": str(calls),
        "Failed": str(failed),
        "Denied": str(denied),
    }


def facts(page):
    """Numbers in the head of a page."""
    found = dict(re.findall(r"<dt>([\w ]+)</dt><dd>([^<]*)</dd>", page))
    return {name: found[name] for name in ("Duration", "Prompts", "Tool calls", "Failed", "Denied")}


def test_totals_count_everything_once(counted, tmp_path):
    """What the fork copied counts in the session that had it first."""
    (total,) = objects(counted, "stats")
    wanted = {"prompts": 3, "tool_calls": 5, "tool_errors": 2, "tool_denied": 1}
    assert picked(total, COUNTS) == wanted
    groups = {row["group"]: row for row in objects(counted, "stats", "--by", "session")}
    assert picked(groups[FORK], COUNTS) == {**dict.fromkeys(COUNTS, 0), "prompts": 1}
    counted.run("sess", "export", "site", "-o", tmp_path / "site", "--no-sync", "--utc", check=0)
    index = (tmp_path / "site" / "index.html").read_text("utf-8")
    numbers = dict(re.findall(r"<dt>([\w ]+)</dt><dd>([^<]*)</dd>", index))
    assert picked(numbers, ("Prompts", "Tool calls", "Failed", "Denied")) == {
        "Prompts": "3",
        "Tool calls": "5",
        "Failed": "2",
        "Denied": "1",
    }
    for session, wanted in DEFINED.items():
        duration = SAID[session][0]
        line = next(one for one in index.splitlines() if f"<span>{duration}</span>" in one)
        assert f"<span>{wanted['prompts']} prompts</span>" in line
        assert f"<span>{wanted['tool_calls']} tool calls</span>" in line
        assert f"{wanted['tool_errors']} failed, {wanted['tool_denied']} denied" in line


def test_tokens_belong_to_one_session_only(counted):
    """They were spent once: the fork has those of its own response."""
    spent = {
        row["session"]: (row["requests"], row["output_tokens"]) for row in objects(counted, "list")
    }
    assert spent == {MAIN: (7, 70), FORK: (1, 10)}


def test_a_subagent_alone_was_asked_by_no_person(counted):
    """Its numbers are its own."""
    total, alone = objects(counted, "stats", "agent-abc12345")
    assert picked(total, COUNTS) == {
        "prompts": 0, "tool_calls": 1, "tool_errors": 1, "tool_denied": 0,
    }  # fmt: skip
    assert picked(alone, ("duration_ms", *TIMES)) == {
        "duration_ms": 18_000, "active_ms": 18_000, "agent_ms": 18_000, "user_ms": 0,
    }  # fmt: skip


def test_estimates_mean_what_recorded_tokens_mean(counted):
    """The model reads prompts and results; it writes answers and the inputs of calls."""
    _, alone = objects(counted, "stats", "agent-abc12345")
    reads = len("look") // 4 + len("no such file") // 4
    assert alone["estimated_input_tokens"] == reads
    assert alone["estimated_output_tokens"] == len("found") // 4 + len("/code/demo/a.py") // 4
