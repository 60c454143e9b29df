"""Trajectories: the models of the `atif` package take them, and nothing of a session is lost."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from contextlib import closing

import pytest
from tests.golden_home import clean

from sess_cli.export import atif, otel
from sess_cli.export.story import Story
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

# Where the package is not installed, nothing here can be told.
Trajectory = pytest.importorskip("atif").Trajectory
MAIN = "11111111-1111-4111-8111-111111111111"
KEY = "ghp_" + "a1B2" * 9
PIXEL = b64encode(b"\x89PNG not really").decode()


def use(call_id, command):
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


@pytest.fixture
def busy(world):
    """A picture, a thought with calls at once and one after another, a failure, two subagents."""
    t = world.transcript()
    image = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    t.append(
        t.record(
            "user",
            {
                "role": "user",
                "content": [{"type": "text", "text": "look"}, {"type": "image", "source": image}],
            },
        ),
        t.assistant([use("c1", "make test"), use("c2", f"echo {KEY}")]),
        t.result("c1", "FAILED", is_error=True),
        t.result("c2", "ok"),
        t.call("c3", "Task", prompt="dig", description="Dig"),
        t.answer("done"),
        t.prompt("thanks"),
    )
    for name in ("agent-7", "agent-8"):
        agent = world.transcript(name)
        agent.path = t.path.with_suffix("") / "subagents" / f"{name}.jsonl"
        agent.path.parent.mkdir(parents=True, exist_ok=True)
        agent.append(agent.prompt("dig", sessionId=MAIN, isSidechain=True))
        agent.append(agent.answer("dug", sessionId=MAIN, isSidechain=True))
        called = {"toolUseId": "c3"} if name == "agent-7" else {}
        agent.path.with_suffix(".meta.json").write_text(json.dumps(called))
    world.ingest()
    return world


def exported(world, *options):
    done = world.run("sess", "export", "atif", *options, "-o", "-", "--no-sync", check=0)
    return [Trajectory.model_validate_json(line) for line in done.stdout.splitlines()]


def test_a_session_is_a_trajectory_with_its_calls_results_and_pictures(busy):
    (told,) = exported(busy, MAIN)
    assert told.schema_version == "ATIF-v1.7"
    assert (told.session_id, told.agent.name) == (MAIN, "claude")
    assert [step.source for step in told.steps] == ["user", "agent", "agent", "agent", "user"]
    prompt, both, task, answer, _ = told.steps
    assert prompt.message[0].text == "look"
    assert prompt.message[1].source.path == f"data:image/png;base64,{PIXEL}"
    assert [call.tool_call_id for call in both.tool_calls] == ["c1", "c2"]
    assert both.tool_calls[0].arguments == {"command": "make test"}
    assert [one.content for one in both.observation.results] == ["FAILED", "ok"]
    assert both.observation.results[0].extra["status"] == "error"
    assert task.tool_calls[0].function_name == "Task"
    assert answer.message == "done"


def test_subagents_are_inside_and_the_call_that_started_one_refers_to_it(busy):
    (told,) = exported(busy, MAIN)
    assert {one.trajectory_id for one in told.subagent_trajectories} == {"agent-7", "agent-8"}
    assert {one.session_id for one in told.subagent_trajectories} == {MAIN}
    (result,) = told.steps[2].observation.results
    assert [one.trajectory_id for one in result.subagent_trajectory_ref] == ["agent-7"]
    (alone,) = exported(busy, MAIN, "--depth", "0")
    assert alone.subagent_trajectories is None


def test_metrics_are_those_of_the_index(busy):
    (told,) = exported(busy, MAIN, "--depth", "0")
    used = [step.metrics for step in told.steps if step.metrics is not None]
    stats = busy.run("sess", "export", "json", MAIN, "--depth", "0", "-o", "-", "--no-sync")
    events = [one["usage"] for one in json.loads(stats.stdout)["events"] if one["usage"]]
    assert sum(one.completion_tokens for one in used) == sum(one["output_tokens"] for one in events)
    assert told.final_metrics.total_completion_tokens == sum(one.completion_tokens for one in used)
    assert told.final_metrics.total_cost_usd == pytest.approx(sum(one.cost_usd for one in used))
    cached = sum(one["cache_read_tokens"] for one in events)
    written = sum(one["cache_write_tokens"] for one in events)
    fresh = sum(one["input_tokens"] for one in events)
    assert told.final_metrics.total_prompt_tokens == fresh + written + cached
    assert told.final_metrics.total_cached_tokens == cached


def test_what_a_fork_copied_is_marked(busy):
    """Who trains on trajectories must not count it twice."""
    original = busy.transcript().path.read_bytes()
    fork = busy.transcript("22222222-2222-4222-8222-222222222222")
    fork.path.write_bytes(original.replace(MAIN.encode(), fork.session.encode()))
    fork.append(fork.prompt("on my own"))
    busy.ingest()
    (told,) = exported(busy, fork.session)
    assert [bool(step.is_copied_context) for step in told.steps] == [True] * 5 + [False]
    assert told.steps[0].extra["copied_from"] == MAIN


def test_secrets_are_masked(busy):
    done = busy.run("sess", "export", "atif", MAIN, "-o", "-", "--no-sync", check=0)
    assert KEY not in done.stdout
    assert "[redacted: " in done.stdout
    assert KEY in json.dumps([one.to_json_dict() for one in exported(busy, MAIN, "--no-redact")])


@pytest.mark.parametrize("agent", ["claude", "codex", "cursor", "gemini", "opencode"])
def test_logs_documents_and_databases_make_what_the_formats_allow(tmp_path, agent):
    """Trajectories that the package takes; spans that end after they start, each ID once."""
    world = clean(tmp_path, agent)
    met = []
    with closing(open_reader(world.state / "index.db")) as db:
        for row in sessions.Listing(every=True, limit=0).rows(db):
            story = Story(db, row, depth=0)
            out = io.BytesIO()
            atif.write(story, out)
            told = Trajectory.model_validate_json(out.getvalue())
            calls = [call for step in told.steps for call in step.tool_calls or ()]
            assert len(calls) == sum(item.type == "tool_use" for item in story.items())
            for request, _ in otel.requests(story):
                (resource,) = json.loads(request)["resourceSpans"]
                met += resource["scopeSpans"][0]["spans"]
    assert met
    assert len({(span["traceId"], span["spanId"]) for span in met}) == len(met)
    for span in met:
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
