"""`sess state`: what holds at the end of a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.continuing.continuing_worlds import SESSION, call, ingest, recorder, state

from sess_cli.continuing.state import Todos


def test_the_last_word_counts(world):
    """Plan, to-dos, mode, system prompt; an update of a plan keeps the title that it lacks."""
    with recorder(world) as record:
        record.system_prompt("Be brief.", "os: linux")
        record.user("boil water")
        record.mode("planning")
        record.plan("draft", "Tea", "1. boil")
        record.todos([{"id": 1, "title": "boil", "status": "pending"}])
        record.plan("rejected", feedback="and milk?")
        record.plan("approved", content="1. boil\n2. milk")
        record.todos(
            [
                {"id": 1, "title": "boil", "status": "done"},
                {"id": 2, "title": "milk", "status": "in_progress"},
            ]
        )
        record.compact("Tea was planned.")
        record.mode("executing")
        record.assistant("boiling")
        record.tool_call("execute", {"command": "kettle"}, "c1")
    assert state(world) == {
        "session": SESSION,
        "agent": "jcode",
        "title": "boil water",
        "project": "/code/tea",
        "git_branch": None,
        "agent_version": None,
        "ended": state(world)["ended"],
        "source_gone": False,
        "model": "m1",
        "models": ["m1"],
        "mode": "executing",
        "environment": "local",
        "profile": None,
        "goal": None,
        "plan": {
            "status": "approved",
            "title": "Tea",
            "content": "1. boil\n2. milk",
            "feedback": None,
        },
        "todos": [
            {"id": "1", "title": "boil", "status": "done", "state": "done"},
            {"id": "2", "title": "milk", "status": "in_progress", "state": "doing"},
        ],
        "system_prompt": "Be brief.",
        "env_info": "os: linux",
        "compactions": 1,
        "summary": "Tea was planned.",
        "pending": [{"tool": "execute", "summary": "kettle"}],
        "last_prompt": "boil water",
        "last_answer": "boiling",
        "broken_lines": [],
    }


def test_lines_that_cannot_be_read_are_named(world):
    """Such a line may have changed the mode: it is not known, and not silently the old one."""
    with recorder(world) as record:
        record.user("boil water")
        record.mode("planning")
        record.mode("executing")
    path = Path(record.path)
    path.write_bytes(path.read_bytes().replace(b'"executing"', b'"execu', 1))
    assert state(world)["broken_lines"] == [4]
    told = world.run("sess", "state", SESSION, check=0).stdout
    assert "line 4 cannot be read: what it changed is not known" in told


def test_nothing_is_made_up(world):
    """A session that says nothing about itself has no plan, no to-dos and no mode."""
    with recorder(world) as record:
        record.user("hello")
    found = state(world)
    assert (found["plan"], found["todos"], found["mode"], found["goal"]) == (None, [], None, None)
    assert (found["environment"], found["system_prompt"], found["compactions"]) == (
        "local",
        None,
        0,
    )


def test_the_environment_is_the_last_that_was_reached(world):
    """A switch that failed, was denied, or was made by a subagent does not count."""
    with recorder(world) as record:
        record.user("go")
        call(record, "switch_env", "c1", "ok", target="staging")
        call(record, "switch_env", "c2", "", error="no route", target="prod")
        record.tool_call("switch_env", {"target": "moon"}, "c3")
        record.tool_result("switch_env", "", "c3", denied=True)
        record.subagent_start("look")
        call(record, "switch_env", "s1", "ok", target="elsewhere")
        record.subagent_result("look")
        record.tool_call("switch_env", {"target": "never answered"}, "c4")
    assert state(world)["environment"] == "staging"


def test_a_goal_is_cleared_and_an_agent_is_named(world):
    """As newer versions write them."""
    with recorder(world) as record:
        record.user("go")
        record.entry({"type": "goal_update", "goal_objective": "tea", "goal_status": "active"})
        record.entry({"type": "agent_change", "agent": "brewer"})
    assert (state(world)["goal"], state(world)["profile"]) == ("tea", "brewer")
    with recorder(world) as record:
        record.entry({"type": "goal_update", "goal_objective": "tea", "goal_status": "cleared"})
    assert state(world)["goal"] is None


def test_the_agent_of_the_header_holds_until_another_is_chosen(world):
    """One that is chosen before the first prompt is only there; no name means the default."""
    path = world.root / ".jcode" / "sessions" / f"{SESSION}.json"
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(entry):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry | {"timestamp": "2026-03-01T10:00:00Z"}) + "\n")

    write({"type": "session_start", "uuid": SESSION, "project": "/p", "agent": "brewer"})
    write({"type": "user", "content": "go"})
    assert state(world)["profile"] == "brewer"
    write({"type": "agent_change"})
    assert state(world)["profile"] == "default"


def test_an_empty_snapshot_ends_the_to_dos(world):
    """jcode leaves out an empty list."""
    with recorder(world) as record:
        record.user("go")
        record.todos([{"id": 1, "title": "mine", "status": "pending"}])
        record.entry({"type": "todo_snapshot"})
    assert state(world)["todos"] == []


def test_a_subagent_without_a_result_ends_with_the_next_prompt(world):
    """It does not swallow the rest, and a warning says so."""
    with recorder(world) as record:
        record.user("one")
        record.subagent_start("look")
        record.todos([{"id": 1, "title": "mine", "status": "pending"}])
        record.assistant("of the subagent")
        record.user("two")
        record.assistant("of the session")
    assert state(world)["last_answer"] == "of the session"
    warned = world.sql("SELECT reason FROM warnings")
    assert warned == [("a subagent without a result",)]


def test_claude_code(world):
    """The mode of the last prompt, the list of its to-do tools, a plan and whether it was taken."""
    log = world.transcript()
    plan = {"plan": "# Tea\n1. boil"}
    todos = [
        {"content": "boil", "status": "completed", "activeForm": "Boiling"},
        {"content": "pour", "status": "pending", "activeForm": "Pouring"},
    ]
    log.append(
        log.prompt("tea please", permissionMode="plan"),
        log.call("p1", "ExitPlanMode", **plan),
        log.result("p1", "no milk?", is_error=True, toolDenialKind="user"),
    )
    found = state(world, log.session)
    assert (found["mode"], found["plan"]["status"]) == ("plan", "rejected")
    assert found["plan"]["feedback"] == "no milk?"
    log.append(
        log.call("p2", "ExitPlanMode", **plan),
        log.result("p2", "approved"),
        log.prompt("go", permissionMode="acceptEdits"),
        log.call("t1", "TodoWrite", todos=todos),
        log.result("t1", "ok"),
    )
    found = state(world, log.session)
    assert found["mode"] == "acceptEdits"
    assert found["plan"] == {
        "status": "approved",
        "title": None,
        "content": "# Tea\n1. boil",
        "feedback": None,
    }
    assert [(one["title"], one["state"]) for one in found["todos"]] == [
        ("boil", "done"),
        ("pour", "open"),
    ]
    assert (found["model"], found["git_branch"]) == ("claude-opus-4-5", "main")


def test_the_view_for_people_leaves_out_what_is_empty(world):
    """One fact per line, long texts cut unless --full."""
    with recorder(world) as record:
        record.user("go")
        record.plan("draft", "Long", "\n".join(f"step {n}" for n in range(20)))
        record.todos([{"id": 1, "title": "boil", "status": "done"}])
    ingest(world)
    done = world.run("sess", "state", SESSION, "--no-sync", check=0)
    assert done.stdout == (
        "title     go\n"
        "session   7ea0 (jcode)\n"
        "project   /code/tea\n"
        "model     m1\n"
        "plan      Long (draft)\n"
        + "".join(f"          step {n}\n" for n in range(11))
        + "          … 9 more lines (--full)\n"
        "to-dos    [x] boil\n"
        "asked     go\n"
    )
    full = world.run("sess", "state", SESSION, "--no-sync", "--full", check=0)
    assert "          step 19\n" in full.stdout


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([{"todos": [{"content": "a", "status": "completed"}]}], [("a", "done")]),
        ([{"plan": [{"step": "a", "status": "in_progress"}]}], [("a", "doing")]),
        ([{"todos": ["a", "b"]}], [("a", "open"), ("b", "open")]),
        ([{"todos": "- [x] a\n- [ ] b\n* [~] c"}], [("a", "done"), ("b", "open"), ("c", "doing")]),
        ([{"todos": [{"title": "a"}]}, {"todos": []}], []),
        (
            [
                {"subject": "a"},
                {"subject": "b"},
                {"taskId": "1", "status": "completed"},
                {"taskId": "2", "status": "deleted"},
                {"taskId": "1"},
            ],
            [("a", "done")],
        ),
        (
            [
                {"todos": [{"id": "x", "content": "a", "status": "pending"}]},
                {
                    "merge": True,
                    "todos": [{"id": "x", "status": "done"}, {"id": "y", "content": "b"}],
                },
            ],
            [("a", "done"), ("b", "open")],
        ),
        ([{"plan": "# a plan in prose"}], []),
        ([None, "text", 5, {"todos": 5}, {"todos": [None]}], []),
    ],
)
def test_lists_of_any_agent(calls, expected):
    """Whole lists, single tasks by number, merged changes, check boxes; nothing from nonsense."""
    todos = Todos()
    for given in calls:
        todos.take(given)
    assert [(todo.text, todo.state) for todo in todos.all] == expected
