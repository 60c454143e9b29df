"""`sess handoff`: a brief that another agent can start from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.cli.continuing.continuing_worlds import SESSION, call, ingest, objects, recorder

from sess_cli.continuing.handoff import plain

KEY = "AKIAQ3EGRIJ5Q7BDKQ2M"


@pytest.fixture
def tea(world):
    """A session in which much happened."""
    with recorder(world) as record:
        record.user("make tea\nwith a `<pot>` that is blue")
        record.plan("approved", "Tea", "1. boil\n2. pour")
        call(record, "ask_user", "q1", "green", question="Which tea?")
        call(record, "execute", "c1", "[Exit code: 1]\nno gas", command="make boil")
        call(record, "execute", "c2", "", command="ls -la")
        call(record, "execute", "c3", "E: no cups\n[Exit code: 2]", command="pytest tests/cups")
        call(record, "write", "c4", "", file_path="/code/tea/pot.md", content="blue\n")
        edit = {"file_path": "/code/tea/pot.md", "old_string": "blue", "new_string": "red\nish"}
        call(record, "edit", "c5", "", **edit)
        call(record, "edit", "c6", "", error="string to replace not found in file", **edit)
        call(record, "execute", "c7", "boils", command="make boil -j2")
        record.tool_call("execute", {"command": "rm -rf pantry"}, "c8")
        record.tool_result("execute", "", "c8", denied=True)
        record.user(f"use the key {KEY} <b>now</b>")
        record.todos(
            [
                {"id": 1, "title": "boil", "status": "done"},
                {"id": 2, "title": "pour_it", "status": "in_progress"},
                {"id": 3, "title": "drink", "status": "pending"},
            ]
        )
        record.assistant("# Boiled\nNow I pour.")
        record.tool_call("execute", {"command": "pour --slowly"}, "c9")
    ingest(world)
    return world


def handoff(world, *arguments, check=0):
    return world.run("sess", "handoff", SESSION, "--no-sync", *arguments, check=check)


def test_a_brief_says_what_another_agent_must_know(tea):
    """Goal, plan, answers, files, the last run of commands, what failed and still does, to-dos."""
    done = handoff(tea)
    keys = {
        one["key"][:8]: one["what"]
        for found in objects(handoff(tea, "--json"))
        for one in [*found["decisions"], *found["errors"]]
    }
    (asked,) = (key for key, what in keys.items() if what.startswith("Asked"))
    (denied,) = (key for key, what in keys.items() if what.startswith("Not allowed"))
    (failed,) = (key for key, what in keys.items() if what.startswith("pytest"))
    when = done.stdout.partition("Last active: ")[2].partition(" UTC")[0]
    assert (
        done.stdout
        == f"""\
# Handoff: make tea

You take over a session of jcode with m1. Quotes are from it.

- Work in `/code/tea`
- Last active: {when} UTC
- Everything: `sess show 7ea0`; one event: `sess show 7ea0#EVENT`

## Goal

> make tea
> with a `<pot>` that is blue

## What was asked later

- use the key [redacted: API key] \\<b>now\\</b>

## Plan

> plan approved
> Tea
> 1. boil
> 2. pour

## Decisions

- Asked: Which tea? Answer: green (`#{asked}`)
- Not allowed: rm -rf pantry (`#{denied}`)

## Files changed

- `pot.md` (+3 −1, 2 edits)

## Commands that matter

- `pytest tests/cups` (failed)
- `make boil -j2` (ok, run 2 times)

## Open errors

- `pytest tests/cups` (`#{failed}`)

  ```text
  E: no cups
  [Exit code: 2]
  ```

## To-dos

- [x] boil
- [~] pour_it
- [ ] drink

## Where it stands

The agent said last:

> ### Boiled
> Now I pour.

- No result yet: `pour --slowly`
"""
    )
    assert done.stderr == "masked 1 API key; --no-redact turns this off\n"


@pytest.mark.parametrize("tokens", [100, 150, 300, 1000])
def test_a_brief_keeps_to_its_budget(tea, tokens):
    """At four characters per token, whatever has to go; the goal is always there."""
    text = handoff(tea, "--max-tokens", str(tokens)).stdout
    assert len(text) <= tokens * 4
    assert text.startswith("# Handoff: make tea\n")


def test_a_long_session_becomes_shorter_not_cut_off(world):
    """Every section stays; lists and texts shrink."""
    with recorder(world) as record:
        for number in range(60):
            record.user(f"request {number} " + "word " * 200)
            command = f"tool{number} run"
            call(record, "execute", f"c{number}", "bad\n[Exit code: 3]", command=command)
        record.assistant("answer " * 2000)
    ingest(world)
    text = handoff(world, "--max-tokens", "1500").stdout
    assert 1000 * 4 < len(text) <= 1500 * 4
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Goal",
        "## What was asked later",
        "## Commands that matter",
        "## Open errors",
        "## Where it stands",
    ]
    assert "request 59" in text
    assert "tool59 run" in text


def test_secrets_stay_here(tea, tmp_path):
    """In a file and as JSON too, unless one asks for them."""
    out = tmp_path / "brief.md"
    done = handoff(tea, "-o", str(out))
    assert done.stdout == ""
    assert done.stderr.startswith(f"wrote {out} (")
    assert KEY not in out.read_text("utf-8") + handoff(tea, "--json").stdout
    assert KEY in handoff(tea, "--no-redact").stdout


def test_a_session_of_claude_code(world):
    """A compaction's summary, an API error at the end, and edits of subagents' files."""
    log = world.transcript()
    log.append(
        log.prompt("fix it"),
        log.call("t1", "TodoWrite", todos=[{"content": "look", "status": "completed"}]),
        log.result("t1", "ok"),
        log.prompt("It was looked at.", isCompactSummary=True),
        log.answer("API Error: 529 overloaded", isApiErrorMessage=True),
    )
    world.ingest()
    text = world.run("sess", "handoff", log.session, "--no-sync", check=0).stdout
    assert "## Summary of earlier work\n\n> It was looked at.\n" in text
    assert "- [x] look\n" in text
    assert text.endswith("## Where it stands\n\n- It ended early: API Error: 529 overloaded\n")


@given(st.text("ab`<>/\\! ", max_size=30))
def test_foreign_text_is_never_html(text):
    """However it quotes and escapes: a reader of Markdown sees words and code."""
    (block,) = (one for one in MarkdownIt().parse(f"- {plain(f'x{text}')}") if one.type == "inline")
    assert {one.type for one in block.children or ()} <= {"text", "code_inline", "text_special"}


def test_what_is_no_longer_to_do_is_not_handed_over(world):
    """The last list was empty, which jcode leaves out."""
    with recorder(world) as record:
        record.user("make tea")
        record.todos([{"id": 1, "title": "fill the samovar", "status": "pending"}])
        record.entry({"type": "todo_snapshot"})
    assert "samovar" not in world.run("sess", "handoff", SESSION, check=0).stdout
