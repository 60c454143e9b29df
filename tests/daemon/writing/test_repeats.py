"""Ids, words and moments that occur on every line cost no more than those that occur once."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest
from tests.conftest import World, opened
from tests.waiting import lines_run

from sess_schema.ids import RecordId
from sessiond.ingest import Ingest
from sessiond.writing import usage
from sessiond.writing.transaction import Store

EARLY, LATE = "2026-02-01T10:00:00.000Z", "2026-02-01T20:00:00.000Z"


def one_message_id(t, number):
    return t.assistant([{"type": "text", "text": f"part {number}"}], message_id="msg_1") | {
        "requestId": f"req_{number}"
    }


def one_message_id_without_requests(t, number):
    record = one_message_id(t, number)
    del record["requestId"]
    return record


def identical(t, _number):
    t.count = 0
    return t.answer("again")


def one_moment(t, number):
    return t.answer(f"part {number}", timestamp=EARLY if number else LATE)


def one_text_backwards(t, number):
    return t.answer("go on", timestamp=f"2026-02-01T10:{59 - number // 60 % 60}:00.{number:03}Z")


def one_call_id(t, number):
    if number % 2:
        return t.result("call_1", f"output {number}")
    return t.call("call_1", command=f"echo {number}")


def one_call_id_and_moment(t, number):
    return one_call_id(t, number) | {"timestamp": EARLY if number else LATE}


def results_of_one_call(t, number):
    return t.result("call_1", f"output {number}")


def calls_before_their_results(t, number):
    if number % 300 < 150:
        return t.call("call_1", command=f"echo {number}")
    return t.result("call_1", f"output {number}")


def work(world, line, count):
    """Lines of Python and hundreds of SQLite's steps that loading a file takes."""
    t = world.transcript()
    t.append(*[line(t, number) for number in range(count)])
    world.state.mkdir(mode=0o700)
    steps = 0

    def go_on():
        nonlocal steps
        steps += 1
        return False

    with closing(opened(world.state / "index.db")) as db:
        ingest = Ingest(Store(db))
        db.set_progress_handler(go_on, 100)
        lines = lines_run(lambda: ingest.reconcile(world.places()))
    assert world.sql("SELECT lines FROM sources") == [(count,)]
    return lines, steps


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        one_message_id,
        one_message_id_without_requests,
        identical,
        one_moment,
        one_text_backwards,
        one_call_id,
        one_call_id_and_moment,
        results_of_one_call,
        calls_before_their_results,
    ],
)
def test_the_work_grows_with_the_lines_and_not_faster(tmp_path, line):
    """Three times the lines take about three times the work, whatever they repeat."""
    for name in ("few", "many"):
        (tmp_path / name).mkdir()
    few = work(World(tmp_path / "few"), line, 300)
    many = work(World(tmp_path / "many"), line, 900)
    assert many[0] < 4 * few[0]
    assert many[1] < 4.5 * few[1]


def test_results_of_one_call_and_moment_are_replays_only_with_the_same_words(world):
    """A result with another output is another one: nothing that was said is hidden."""
    t = world.transcript()
    first, other, again = (t.result("c1", text) for text in ("one", "two", "one"))
    for record in (first, other, again):
        record["timestamp"] = EARLY
    t.append(t.prompt("go", timestamp=EARLY), t.call("c1", command="x"), first)
    t.append(t.prompt("go on", timestamp=LATE), other, again)
    world.ingest()
    results = "SELECT output FROM event_texts WHERE output <> '' ORDER BY id"
    assert world.sql(results) == [("one",), ("two",)]
    assert world.sql("SELECT count(*) FROM records WHERE copy_of IS NOT NULL") == [(1,)]
    world.check()


def test_records_of_two_agents_are_never_copies_of_each_other(world):
    """The same words at the same moment in the places of many agents are found for each."""
    probe = [sys.executable, "-m", "sessiond.service.agents", "--probe", "kettle"]
    agents = subprocess.run(probe, env=world.env, check=True, capture_output=True, text=True)
    world.run("sessiond", "sync", check=0)
    sessions = world.sql("SELECT agent, events FROM sessions ORDER BY 1")
    assert sessions == [(agent, 1) for agent in sorted(agents.stdout.split())]
    assert world.found("kettle") == ["put the kettle on"] * len(sessions)
    assert world.sql("SELECT count(*) FROM records WHERE copy_of IS NOT NULL") == [(0,)]


class Row(int):
    """The number of a row, which counts how often it is compared."""

    compared = 0
    __hash__ = int.__hash__

    def __eq__(self, other):
        Row.compared += 1
        return int.__eq__(self, other)


@pytest.mark.parametrize("request_id", [None, "req"])
def test_rows_of_one_message_are_grouped_without_comparing_each_with_each(request_id):
    """A thousand rows with one message id take less than a thousand comparisons."""
    zeros: list[Any] = [0] * len(usage.COLUMNS)
    nothing = usage.Line(*zeros)
    lines: dict[int, usage.Line] = {
        Row(number): nothing._replace(
            record_id=RecordId(number), request_id=request_id and f"req{number}"
        )
        for number in range(1000)
    }
    Row.compared = 0
    assert len(usage._counted(lines, {}, set(), {})) == 1
    assert Row.compared < 1000
