"""Forks copy their parent's lines under new timestamps; the index has each record once."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.daemon.families.rollouts.rollouts import (
    CodexHome,
    Rollout,
    call,
    event,
    item,
    message,
    output,
    thread_id,
    tokens,
)

PARENT, FORK, SECOND = thread_id(1), thread_id(2), thread_id(3)


def parent_of(home):
    return Rollout(home, 1).turn(
        1, "fly", call("c1", "ls"), output("c1", "kite"), tokens((100, 60, 9)), "flown"
    )


def family(home):
    """A thread that continued after it was forked, its fork, and a fork of the fork."""
    parent = parent_of(home)
    fork = Rollout(home, 2, hours=2, forked_from_id=PARENT).copy(parent)
    fork.turn(2, "higher", "up", tokens((150, 90, 14)))
    second = Rollout(home, 3, hours=4, forked_from_id=FORK).copy(fork)
    second.turn(3, "land", "down", tokens((170, 95, 15)))
    parent.turn(4, "lower", "deeper", tokens((130, 80, 12)))
    return [parent, fork, second]


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_each_record_and_response_is_owned_once_by_the_thread_that_made_it(home, order):
    """Parent, fork and fork of the fork, read one by one in any order."""
    files = family(home)
    for number in order:
        files[number].save()
        home.ingest()
    home.check()
    assert home.texts(PARENT) == ["fly", "lower"]
    assert home.texts(FORK) == ["fly", "higher"]
    assert home.texts(SECOND) == ["fly", "higher", "land"]
    assert home.owned() == [
        (PARENT, "fly"), (PARENT, "ls"), (PARENT, "flown"), (PARENT, "lower"), (PARENT, "deeper"),
        (FORK, "higher"), (FORK, "up"), (SECOND, "land"), (SECOND, "down"),
    ]  # fmt: skip
    assert home.used() == [(PARENT, 50, 80, 12), (FORK, 20, 30, 5), (SECOND, 15, 5, 1)]


def test_a_fork_without_its_parent_has_everything(home):
    """Copied records belong to the fork while no other session has them."""
    _, fork, _ = family(home)
    fork.save()
    home.ingest()
    assert home.texts(FORK) == ["fly", "higher"]
    assert home.used() == [(FORK, 60, 90, 14)]


def test_a_record_gets_the_time_of_its_first_thread(home):
    """Timestamps, durations and days of cost are the parent's, even if the fork is read first."""
    parent, fork, _ = family(home)
    fork.save()
    home.ingest()
    parent.save()
    home.ingest()
    found = home.sql("SELECT ts, duration_ms FROM events WHERE call_id = 'c1'")
    first = int(parent.clock.timestamp() * 1000)
    assert found == [(first + 5000, 1000)]
    assert home.sql("SELECT min(ts) FROM usage") == [(first + 7000,)]


def test_threads_that_start_alike_are_not_copies(home):
    """Two threads start with `hello`: two prompts, two answers, two responses."""
    for number in (1, 2):
        rollout = Rollout(home, number, hours=number)
        rollout.add(message("user", "hello"), message("assistant", "hi"), tokens((10, 0, 1)))
        rollout.save()
    home.ingest()
    assert home.sql("SELECT count(*) FROM records WHERE copy_of IS NOT NULL") == [(0,)]
    assert home.used() == [(PARENT, 10, 0, 1), (FORK, 10, 0, 1)]


def test_copies_without_turn_ids_are_recognised_by_everything_before_them(home):
    """The first releases with forks wrote no turn ids."""
    parent = Rollout(home, 1).add(message("user", "a"), message("assistant", "ok"))
    parent.add(message("user", "a"), message("assistant", "ok"))
    fork = Rollout(home, 2, hours=1, forked_from_id=PARENT).copy(parent, 3)
    fork.add(message("user", "b"), message("assistant", "ok"))
    for rollout in (fork, parent):
        rollout.save()
        home.ingest()
    assert home.texts(PARENT) == ["a", "a"]
    assert home.texts(FORK) == ["a", "b"]
    assert [text for owner, text in home.owned() if owner == FORK] == ["b", "ok"]


def test_the_same_text_twice_in_a_turn_is_two_events(home):
    """This holds in a thread and in its fork."""
    parent = Rollout(home, 1).turn(1, "go", "running", "running", message("user", "go"))
    fork = Rollout(home, 2, hours=1, forked_from_id=PARENT).copy(parent)
    for rollout in (parent, fork):
        rollout.save()
    home.ingest()
    for thread in (PARENT, FORK):
        assert home.texts(thread) == ["go", "go"]
        assert home.texts(thread, "assistant") == ["running", "running"]
    assert [owner for owner, _ in home.owned()] == [PARENT] * 4


def test_a_subagent_with_some_of_its_parents_lines_counts_nothing_twice(home):
    """Codex omits calls, results and thoughts from the history that a subagent starts with."""
    parent = parent_of(home)
    spawn = {"subagent": {"thread_spawn": {
        "parent_thread_id": PARENT, "depth": 1, "agent_nickname": "Ada", "agent_role": "explorer",
    }}}  # fmt: skip
    kept = [
        line
        for line in parent.lines[1:]
        if line["type"] == "event_msg" or line["payload"].get("type") == "message"
    ]
    child = Rollout(home, 2, hours=1, source=spawn).add(*kept).turn(2, "look", "seen")
    child.add(tokens((130, 70, 11)))
    parent.add(
        call("c2", "spawn"),
        event("collab_agent_spawn_end", call_id="c2", sender_thread_id=PARENT, new_thread_id=FORK),
    )
    for rollout in (child, parent):
        rollout.save()
        home.ingest()
    assert home.sql(
        "SELECT kind, title, agent_type, call_id FROM sessions WHERE parent_id > 0"
    ) == [("subagent", "Ada", "explorer", "c2")]
    assert [text for owner, text in home.owned() if owner == FORK] == ["look", "seen"]
    assert home.used() == [(PARENT, 40, 60, 9), (FORK, 20, 10, 2)]


def test_a_rollback_takes_prompts_back_from_its_own_thread_only(home):
    """The fork was made before the rollback, and keeps the prompt that the parent took back."""
    parent = parent_of(home).turn(2, "higher", "up")
    fork = Rollout(home, 2, hours=1, forked_from_id=PARENT).copy(parent)
    parent.add(event("thread_rolled_back", num_turns=1)).turn(3, "lower", "down")
    for rollouts in ((parent, fork), (fork, parent)):
        for rollout in rollouts:
            rollout.save()
            home.ingest()
        assert home.texts(PARENT) == ["fly", "lower"]
        assert home.texts(FORK) == ["fly", "higher"]
        assert home.used() == [(PARENT, 40, 60, 9)]
        for rollout in rollouts:
            rollout.path.unlink()
        (home.state / "index.db").unlink()


@pytest.mark.parametrize("forked_first", [False, True])
def test_a_result_that_was_taken_back_answers_no_call_of_a_fork(home, forked_first):
    """The fork was made before the call ended; then its parent rolled back the call."""
    parent = parent_of(home)
    fork = Rollout(home, 2, hours=1, forked_from_id=PARENT).copy(parent, 6)
    parent.add(event("thread_rolled_back", num_turns=1))
    for rollout in (fork, parent) if forked_first else (parent, fork):
        rollout.save()
        home.ingest()
    shown = "SELECT s.native_id, e.status FROM events e JOIN sessions s ON s.id = e.session_id"
    assert home.sql(f"{shown} WHERE e.call_id = 'c1' AND e.retired = 0") == [(FORK, "pending")]


def grown(home, rng):
    """Random threads, forks, rollbacks and compactions."""
    files = [parent_of(home)]
    for number in range(2, rng.randint(3, 5)):
        base = rng.choice(files)
        fork = Rollout(home, number, hours=number, forked_from_id=base.thread)
        fork.copy(base, rng.randint(3, len(base.lines)))
        files.append(fork)
        for turn in range(rng.randint(0, 2)):
            total = 200 + 10 * (10 * number + turn)
            fork.turn(10 * number + turn, rng.choice(["go", "on"]), tokens((total, 60, 20)), "done")
        if rng.random() < 0.3:
            fork.add({"type": "compacted", "payload": {"message": f"so far {number}"}})
        if rng.random() < 0.3:
            base.add(output("c1", f"late {number}"), item("reasoning", summary=[]))
    for rollout in files:
        if rng.random() < 0.4:
            rollout.add(event("thread_rolled_back", num_turns=rng.randint(1, 2)))
            rollout.turn(100 + int(rollout.thread[-2:]), "again", "anew")
    return files


@pytest.mark.slow
@settings(max_examples=amount(13, 120), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
def test_any_order_and_any_chunks_give_the_same_index(seed, order):
    """Files grow by one line or many at a time, in any order; the final index is the same."""
    rng = random.Random(order)
    with tempfile.TemporaryDirectory() as folder:
        clean, disturbed = CodexHome(Path(folder) / "a"), CodexHome(Path(folder) / "b")
        for rollout in grown(clean, random.Random(seed)):
            rollout.save()
        clean.ingest()
        left = {
            rollout.path: rollout.encoded() for rollout in grown(disturbed, random.Random(seed))
        }
        while left:
            path = rng.choice(sorted(left))
            path.parent.mkdir(parents=True, exist_ok=True)
            count = rng.randint(1, len(left[path]))
            with path.open("ab") as file:
                file.writelines(left[path][:count])
            left[path] = left[path][count:]
            if not left[path]:
                del left[path]
            if rng.random() < 0.7:
                disturbed.ingest()
        disturbed.ingest()
        expected, found = clean.comparable(), disturbed.comparable()
        for name, rows in expected.items():
            assert found[name] == rows, name
        disturbed.check()


def test_turn_ids_that_are_not_unique_belong_to_their_thread(home):
    """Threads that number their turns are not copies of each other."""
    for number in (1, 2):
        rollout = Rollout(home, number, hours=number)
        rollout.add(event("task_started", turn_id="1"), message("user", "hi")).save()
    home.ingest()
    assert home.sql("SELECT count(*) FROM records WHERE copy_of IS NOT NULL") == [(0,)]
