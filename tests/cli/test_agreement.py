"""docs/numbers.md: one session, one answer, in every output and for every agent."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import timedelta

import pytest
from tests import agreement
from tests.conftest import TEN_O_CLOCK
from tests.golden_home import GOLDEN, GoldenWorld, agents

from sess_schema.connection import open_reader
from sess_schema.queries.sessions import Listing


@pytest.mark.parametrize("agent", agents())
def test_every_output_says_the_same(tmp_path, agent):
    """Times, prompts, calls, failed and denied ones, in lists, statistics and exports."""
    world = GoldenWorld(tmp_path, agent)
    world.lay_all()
    logs = lay_logs(world)
    world.ingest()
    (tmp_path / "out").mkdir()
    with closing(open_reader(world.state / "index.db")) as db:
        assert db.execute("SELECT count(*) FROM sources WHERE path LIKE '%golden-log%'").get == logs
        assert [*agreement.differences(db, tmp_path / "out")] == []


def lay_logs(world):
    """Put the agent's golden logs beside a transcript of its home; return how many."""
    logs = sorted(GOLDEN.glob(f"{world.agent}/*/input.jsonl"))
    beside = [
        part
        for part in world.parts
        if world.kind(part) == "transcript" and part.path.endswith(".jsonl")
    ]
    for number, log in enumerate(logs):
        path = world.file(beside[0])
        shutil.copy(log, path.with_stem(f"{path.stem.rpartition('-')[0]}-golden-log-{number}"))
    return len(logs)


MAIN = "11111111-1111-4111-8111-111111111111"
FORK = "22222222-2222-4222-8222-222222222222"
BACK = "33333333-3333-4333-8333-333333333333"
LATE = "44444444-4444-4444-8444-444444444444"
UNDATED = "55555555-5555-4555-8555-555555555555"
LOST = "66666666-6666-4666-8666-666666666666"
REFUSED = "The user doesn't want to proceed with this tool use."


def at(seconds):
    moment = TEN_O_CLOCK + timedelta(seconds=seconds)
    return {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"}


def subagent(world, name, parent, begin):
    t = world.transcript(f"agent-{name}", f"-code-demo/{parent}/subagents")
    more = {"isSidechain": True, "sessionId": parent}
    t.append(
        t.prompt("look", **more) | at(begin),
        t.call(f"{name}-1", "Read", file_path="/a") | more | at(begin + 2),
        t.result(f"{name}-1", "none", is_error=True, **more) | at(begin + 4),
        t.call(f"{name}-2", "Task", prompt="deeper") | more | at(begin + 5),
        t.result(f"{name}-2", "no", toolUseResult={"agentId": f"{name}b"}, **more) | at(begin + 9),
    )


def only_in_progress(t):
    """What the parent's file repeats of a subagent without a file."""
    said = {"type": "assistant", **t.answer("in between", message_id="msg_progress")}
    data = {"type": "agent_progress", "agentId": "sub3", "message": said}
    return t.record("progress", None, data=data, parentToolUseID="c2")


def test_awkward_sessions_have_one_answer_too(world, tmp_path):
    """Forks, subagents of subagents or of nobody, times that go back, no times, late results."""
    t = world.transcript(MAIN)
    shared = [
        t.prompt("fix it"),
        t.call("c1", command="make") | at(20),
        t.result("c1", REFUSED, is_error=True) | at(25),
        t.call("c2", "Task", prompt="look") | at(30),
        t.result("c2", "found", toolUseResult={"agentId": "sub1"}) | at(60),
        t.result("nobody", "a result without its call") | at(61),
    ]
    t.append(*shared, t.call("c3", command="sleep") | at(70), t.result("c3", "") | at(1000))
    t.append(only_in_progress(t) | at(40))
    subagent(world, "sub1", MAIN, 32)
    subagent(world, "sub1b", MAIN, 38)
    subagent(world, "sub2", LOST, 100)
    fork = world.transcript(FORK)
    fork.count = 50
    fork.append(*shared, fork.call("c3b", command="ls") | at(900), fork.result("c3", "x") | at(2))
    back = world.transcript(BACK)
    back.append(
        back.prompt("first") | at(500),
        back.call("b1", command="date") | at(90),
        back.result("b1", "late", is_error=True) | at(10),
        back.prompt("second") | at(3),
    )
    late = world.transcript(LATE)
    late.append(late.call("l1", command="wait") | at(0), late.result("l1", "ok") | at(54))
    undated = world.transcript(UNDATED)
    for record in (undated.prompt("when"), undated.call("u1"), undated.result("u1", "never")):
        undated.append({name: value for name, value in record.items() if name != "timestamp"})
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        assert [*agreement.differences(db, tmp_path, sqlite=True)] == []
        every = {row.session for row in Listing(every=True, limit=0).rows(db)}
    assert every >= {MAIN, FORK, BACK, LATE, UNDATED, "agent-sub1", "agent-sub1b", "agent-sub2"}
