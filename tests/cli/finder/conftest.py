"""A small index to find something in."""

from __future__ import annotations

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"
THIRD = "33333333-3333-4333-8333-333333333333"
LONG = 10


@pytest.fixture(autouse=True)
def at_home(world, monkeypatch):
    """Nothing depends on the machine that runs the tests: neither its home nor its speed."""
    from sess_cli.finder import query  # slow to import

    monkeypatch.setattr(query, "_FOUND_SOON", LONG)
    monkeypatch.setattr(query, "_RANKED_SOON", LONG)
    monkeypatch.setenv("HOME", str(world.root))
    monkeypatch.chdir(world.root)
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def shop(world):
    """Three sessions in two projects, one of them with a subagent and a failed call."""
    main = world.transcript(MAIN)
    main.append(
        main.prompt("the checkout times out"),
        main.answer("I look at the **timeout** of the gateway."),
        main.call("c1", command="pytest -x tests/test_gateway.py"),
        main.result("c1", "FAILED: gateway timeout after 30 s", is_error=True),
        main.call("c2", "Read", file_path="/code/demo/gateway.py"),
        main.result("c2", "TIMEOUT = 30\n" + "\n".join(f"line {n}" for n in range(200))),
        main.call("c3", "Task", subagent_type="Explore", description="look", prompt="look"),
        main.result("c3", "done", toolUseResult={"agentId": "abc12345"}),
    )
    child = world.transcript("agent-abc12345", f"-code-demo/{MAIN}/subagents")
    child.append(
        child.prompt("look", isSidechain=True, sessionId=MAIN),
        child.answer("a socket timeout here", isSidechain=True, sessionId=MAIN),
    )
    other = world.transcript(THIRD, "-code-other")
    other.append(
        other.prompt(
            "rename the timeout setting", cwd="/code/other", timestamp="2026-02-03T10:00:00Z"
        )
    )
    world.ingest()
    return world
