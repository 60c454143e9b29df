"""Whose time it was, and how many sessions were at work at once, against a plain count."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.conftest import TEN_O_CLOCK, World

from sess_schema.connection import open_reader
from sess_schema.queries import stats
from sess_schema.queries.stats import Stats

START = int(TEN_O_CLOCK.timestamp() * 1000)
IDLE = 5 * 60_000
NEAR = 2000
# Seconds between events, with some at and beyond the end of what counts.
GAPS = st.sampled_from([0, 0.075, 1, 1.999, 2, 2.001, 30, 200, 299, 300, 301, 400, 900, 1500])
ASK, TELL, NOTE, RUN, QUEUE = "prompt", "answer", "note", "call", "queued"
WORK = st.lists(st.tuples(GAPS, st.sampled_from([ASK, TELL, NOTE, RUN, QUEUE])), max_size=14)
RAN = 70.5  # seconds that every call takes


def written(world, sessions):
    """Transcripts of (gap in seconds, what happened); the moments of each."""
    told = {}
    for number, work in enumerate(sessions):
        t = world.transcript(f"{number:08}-1111-4111-8111-111111111111")
        t.path.touch()
        at, moments = 60 * number, []
        for count, (gap, what) in enumerate(work):
            at += gap
            t.append(_dated(_record(t, what, count), at))
            moments.append((START + round(1000 * at), what))
            if what == RUN:
                at += RAN
                t.append(_dated(t.result(f"run_{number}_{count}", "done"), at))
                moments.append((START + round(1000 * at), RUN))
        told[number] = moments
    world.ingest()
    return told


def _record(t, what, count):
    if what == RUN:
        return t.call(f"run_{int(t.session[:8])}_{count}", command=f"make {count}")
    if what == NOTE:
        return t.record("system", None, subtype="informational", content=f"note {count}")
    if what == QUEUE:  # typed while the agent works: nobody waits for it
        told = {"type": "queued_command", "prompt": f"and {count}", "commandMode": "prompt"}
        return t.record("attachment", None, attachment=told)
    return t.prompt(f"ask {count}") if what == ASK else t.answer(f"told {count}")


def _dated(record, at):
    moment = TEN_O_CLOCK + timedelta(milliseconds=round(1000 * at))
    return {**record, "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"}


def _prompts(moments):
    """Those of prompts, and of the notes just before one with nothing else between them."""
    found = {ts for ts, what in moments if what == ASK}
    said = {ts for ts, what in moments if what != NOTE}
    for ts in {ts for ts, _ in moments} - said:
        after = min((one for one in said if one > ts), default=None)
        if after in found and after - ts <= NEAR:
            found.add(ts)
    return found


def counted(told, since=0, until=1 << 60):
    """The same, gap by gap and moment by moment."""
    active = user = 0
    busy = []
    for moments in told.values():
        inside = [one for one in moments if since <= one[0] < until]
        prompts = _prompts(inside)
        busy_at = {ts for ts, _ in inside}
        stretches = []
        for one, other in pairwise(sorted({ts for ts, _ in inside})):
            active += min(other - one, IDLE)
            user += min(other - one, IDLE) if other in prompts else 0
            if other - one <= IDLE:
                stretches.append((one, other))
        busy.append((busy_at, stretches))
    every = {ts for moments, _ in busy for ts in moments}
    most = max((sum(_at_work(one, ts) for one in busy) for ts in every), default=0)
    return active, user, most


def _at_work(session, ts):
    moments, stretches = session
    return ts in moments or any(first <= ts <= last for first, last in stretches)


@settings(max_examples=amount(8, 75), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(WORK, min_size=1, max_size=4),
    st.integers(0, 4000),
    st.integers(0, 4000),
)
def test_times_are_those_of_a_plain_count(tmp_path_factory, sessions, since, length):
    world = World(tmp_path_factory.mktemp("world"))
    told = written(world, sessions)
    first = START + 1000 * since
    with closing(open_reader(world.state / "index.db")) as db:
        for window in ((0, 1 << 60), (first, first + 1000 * length)):
            asked = Stats(*window) if window[0] else Stats()
            found = stats.read_worktime(db, asked)
            assert (found.active, found.user, found.concurrency) == counted(told, *window)
            assert found.agent == found.active - found.user >= 0


@pytest.fixture
def three(world):
    """Two sessions at once, one with a subagent beside it, and a third an hour later."""
    first = [(0, ASK), (60, TELL), (600, ASK), (30, TELL)]
    second = [(0, ASK), (120, TELL)]
    third = [(3600, ASK), (10, TELL)]
    written(world, [first, second, third])
    main = world.transcript("00000000-1111-4111-8111-111111111111")
    path = main.path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    t = world.transcript()
    t.path = path
    for text in (t.prompt("task"), t.answer("done")):
        record = {**text, "isSidechain": True, "agentId": "a1", "sessionId": main.session}
        with path.open("ab") as file:
            file.write(t.encode(record))
    world.ingest()
    return world


def test_the_total_tells_it(three):
    """60 + 300 (of 600) + 30 s, 120 s, 10 s and 1 s; a person's are the 300."""
    done = three.run("sess", "stats", "--no-sync", "--json", check=0)
    total = json.loads(done.stdout)
    times = (total["active_ms"], total["agent_ms"], total["user_ms"], total["concurrency"])
    assert times == (521_000, 221_000, 300_000, 2)
    shown = three.run("sess", "stats", "--no-sync", check=0).stdout
    assert "8m41s active: agents 3m41s, you 5m0s; up to 2 sessions at once\n" in shown


def test_an_empty_time_has_none(three):
    done = three.run("sess", "stats", "--no-sync", "--since", "2030", "--json", check=1)
    total = json.loads(done.stdout)
    assert (total["active_ms"], total["user_ms"], total["concurrency"]) == (0, 0, 0)


def test_times_are_those_of_the_chosen_models(world):
    """Work is laid to the model that answered last; one that never did has none."""
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("done"))
    world.ingest()
    other = world.transcript("2" * 8 + "-2222-4222-8222-222222222222")
    answer = other.answer("done")
    answer["message"]["model"] = "another"
    other.append(other.prompt("go"), answer, other.prompt("and on"))
    world.ingest()
    for model, active in (("claude-opus-4-5", 1000), ("another", 2000)):
        done = world.run("sess", "stats", "--no-sync", "--json", "--model", model, check=0)
        assert json.loads(done.stdout)["active_ms"] == active


def test_a_model_has_no_estimates_of_sessions_without_one(world):
    t = world.transcript()
    answer = t.answer("long " * 100)
    del answer["message"]["usage"], answer["message"]["model"]
    t.append(t.prompt("go"), answer)
    other = world.transcript("2" * 8 + "-2222-4222-8222-222222222222")
    other.append(other.prompt("go"), other.answer("done"))
    world.ingest()
    assert "estimated" in world.run("sess", "stats", "--no-sync", check=0).stdout
    shown = world.run("sess", "stats", "--no-sync", "--model", "claude", check=0).stdout
    assert "estimated" not in shown


def test_the_wait_before_a_queued_prompt_with_an_editors_text_is_the_persons(world):
    """Eight minutes away, then a prompt that went through the queue: five of them count."""
    t = world.transcript()
    back = 500.0
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "now dry the cups"}
    t.append(
        _dated(t.prompt("brew"), 0),
        _dated(t.answer("done"), 20),
        _dated(queued, back),
        _dated({**queued, "operation": "dequeue", "content": None}, back + 0.002),
        _dated(t.prompt("<ide_opened_file>a.py</ide_opened_file>\nnow dry the cups"), back + 0.075),
        _dated(t.answer("dried"), back + 10),
    )
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        found = stats.read_worktime(db, Stats())
    assert (found.user, found.agent) == (IDLE + 75, 20_000 + 9925)
