"""The views for people say what `sess stats` says, and find their rows by an index."""

from __future__ import annotations

import json

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"
BEGAN = "2026-02-01T10:03:21.000Z"
FORK = "22222222-2222-4222-8222-222222222222"
REFUSED = "The user doesn't want to proceed with this tool use."


@pytest.fixture
def told(world):
    """A fork, a subagent, a failed, a denied and a pending call, an orphan, a repeated response

    and records that left their file.
    """
    t = world.transcript(MAIN)
    shared = [
        t.prompt("please fix the flaky test"),
        t.call("c1", command="pytest -x"),
        t.result("c1", "1 failed", is_error=True),
        t.call("c2", "Edit", file_path="/code/demo/a.py", old_string="one\n", new_string="two\n"),
        t.result("c2", "ok"),
        t.call("c3", command="rm -rf build"),
        t.result("c3", REFUSED, is_error=True),
        t.call("c4", "Task", subagent_type="Explore", description="look", prompt="look"),
    ]
    answer = t.assistant([{"type": "text", "text": "done"}], message_id="msg_twice")
    t.append(*shared)
    t.append(t.result("c4", "found it", toolUseResult={"agentId": "abc123"}))
    t.append(t.result("nobody", "a result without its call"))
    t.append(answer, {**answer, "uuid": "again", "sessionId": MAIN})
    t.append(t.call("c5", command="git commit -m 'Fix the test'"))
    t.append(t.result("c5", "[main 1a2b3c4] Fix the test\n 1 file changed"))
    t.append(t.call("c6", command="sleep 9"))
    fork = world.transcript(FORK)
    fork.count = 100
    fork.append(*[{**record, "sessionId": FORK} for record in shared])
    fork.append(
        fork.prompt("now differently"), fork.call("c7", "Read", file_path="/code/demo/b.py")
    )
    agent = world.transcript("agent-abc123", f"-code-demo/{MAIN}/subagents")
    agent.session = MAIN
    agent.count = 200
    agent.append(
        agent.prompt("look", isSidechain=True, agentId="abc123"),
        {**agent.answer("here"), "isSidechain": True, "agentId": "abc123"},
    )
    rewritten = world.transcript("33333333-3333-4333-8333-333333333333")
    rewritten.append(rewritten.prompt("first version"), rewritten.answer("never mind"))
    world.run("sessiond", "sync", check=0)
    rewritten.path.write_bytes(rewritten.encode(rewritten.prompt("second version")))
    world.run("sessiond", "sync", check=0)
    return world


def total(world):
    done = world.run("sess", "stats", "--json", "--no-sync", check=0)
    found = json.loads(done.stdout)
    sorts = ("input", "output", "cache_write", "cache_read")
    return found | {"tokens": sum(found[f"{sort}_tokens"] for sort in sorts)}


def test_sums_over_views_are_the_totals_of_stats(told):
    """Prompts, calls, errors, tokens, cost and responses, from each view that can tell."""
    said = total(told)
    numbers = ("prompts", "tool_calls", "tool_errors")
    wanted = tuple(said[name] for name in numbers)
    assert wanted == (3, 7, 1)
    assert told.sql("SELECT sum(prompts), sum(tool_calls), sum(tool_errors) FROM v_sessions") == [
        wanted
    ]
    asked = "SELECT count(*) FROM v_events WHERE type = 'user' AND session_kind <> 'subagent'"
    assert told.sql(asked) == [(said["prompts"],)]
    assert told.sql("SELECT count(*), sum(status = 'error') FROM v_calls") == [wanted[1:]]
    money = [(said["requests"], said["tokens"], round(said["cost_usd"], 9))]
    assert told.sql("SELECT count(*), sum(tokens), round(sum(cost_usd), 9) FROM v_usage") == money
    assert money == told.sql(
        "SELECT sum(requests), sum(tokens), round(sum(cost_usd), 9) FROM v_sessions"
    )


def test_views_by_session_are_the_groups_of_stats(told):
    """A subagent's numbers are its parent's in `sess stats --by session`; all else is equal."""
    done = told.run("sess", "stats", "--by", "session", "--json", "--no-sync", check=0)
    said = {
        row["group"]: (row["prompts"], row["tool_calls"], row["requests"], row["cost_nano_usd"])
        for row in map(json.loads, done.stdout.splitlines())
    }
    rows = told.sql(
        "SELECT coalesce(parent, session), sum(prompts), sum(tool_calls), sum(requests),"
        " CAST(round(sum(cost_usd) * 1e9) AS INTEGER) FROM v_sessions GROUP BY 1"
    )
    assert {name: tuple(numbers) for name, *numbers in rows} == said


def test_views_hide_what_is_not_true_any_more(told):
    """No text that left its file, no second row of a response, no copy in a fork."""
    texts = {text for (text,) in told.sql("SELECT text FROM v_events WHERE type = 'user'")}
    assert texts == {"please fix the flaky test", "now differently", "look", "second version"}
    assert told.sql("SELECT count(*) FROM events WHERE retired > 0") == [(2,)]
    assert told.sql("SELECT message_id FROM v_usage WHERE message_id = 'msg_twice'") == [
        ("msg_twice",)
    ]
    assert told.sql("SELECT session FROM v_events WHERE text = 'please fix the flaky test'") == [
        (MAIN,)
    ]
    assert told.sql("SELECT unjoined, output FROM v_events WHERE unjoined IS NOT NULL") == [
        ("orphan", "a result without its call")
    ]


def test_views_name_things_as_people_do(told):
    """Native ids, times as text, dollars, what a subagent belongs to."""
    assert told.sql(
        "SELECT session, agent, kind, parent, title, project, started FROM v_sessions"
        " WHERE kind = 'subagent'"
    ) == [
        (
            "agent-abc123",
            "claude",
            "subagent",
            MAIN,
            "look",
            "/code/demo",
            "2026-02-01T10:03:21.000Z",
        )
    ]
    assert told.sql(
        "SELECT tool, status, time FROM v_calls WHERE session = ? ORDER BY ts", MAIN
    ) == [
        ("Bash", "error", "2026-02-01T10:00:02.000Z"),
        ("Edit", "ok", "2026-02-01T10:00:04.000Z"),
        ("Bash", "denied", "2026-02-01T10:00:06.000Z"),
        ("Task", "ok", "2026-02-01T10:00:08.000Z"),
        ("Bash", "ok", "2026-02-01T10:00:12.000Z"),
        ("Bash", "pending", "2026-02-01T10:00:14.000Z"),
    ]
    assert told.sql("SELECT path, action, tool, session FROM v_files ORDER BY 1") == [
        ("/code/demo/a.py", "edit", "Edit", MAIN),
        ("/code/demo/b.py", "read", "Read", FORK),
    ]
    assert told.sql("SELECT path, added, removed, tool, session FROM v_edits") == [
        ("/code/demo/a.py", 1, 1, "Edit", MAIN)
    ]
    assert told.sql("SELECT tool, kind FROM v_calls WHERE session = ?", FORK) == [("Read", "read")]
    assert told.sql("SELECT sha, branch, subject, session FROM v_commits") == [
        ("1a2b3c4", "main", "Fix the test", MAIN)
    ]


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT tool FROM v_calls WHERE ts >= 1", "events_by_time"),
        ("SELECT text FROM v_events WHERE event_id = 1", "INTEGER PRIMARY KEY"),
        ("SELECT tool FROM v_events WHERE session = 'x' AND agent = 'claude'", "events_by_session"),
        ("SELECT model FROM v_usage WHERE ts >= 1", "usage_by_time"),
        ("SELECT session FROM v_files WHERE path = 'x'", "files_by_path"),
        ("SELECT session FROM v_edits WHERE path = 'x'", "edits_by_path"),
        ("SELECT session FROM v_commits WHERE sha = 'x'", "commits_by_sha"),
        ("SELECT title FROM v_sessions ORDER BY ended_ts DESC", "sessions_by_end"),
    ],
)
def test_simple_questions_use_an_index(told, query, index):
    """A view is not a wall between a condition and the index that answers it."""
    plan = " ".join(row[-1] for row in told.sql(f"EXPLAIN QUERY PLAN {query}"))
    assert index in plan


def test_columns_that_nobody_asks_for_cost_nothing(told):
    """Texts, most of the index, are read for columns that show them."""
    plan = told.sql("EXPLAIN QUERY PLAN SELECT tool, count(*) FROM v_calls GROUP BY tool")
    assert not any("event_texts" in row[-1] for row in plan)
    plan = told.sql("EXPLAIN QUERY PLAN SELECT ts, tool FROM v_calls")
    assert [row[-1] for row in plan] == ["SCAN e"]
