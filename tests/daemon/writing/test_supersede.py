"""Records of a log that later ones replace or take back."""

from __future__ import annotations

import random
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.conftest import opened
from tests.gemini_home import (
    OTHER,
    SESSION,
    GeminiWorld,
    answer,
    call,
    encoded,
    header,
    message,
    prompt,
    rewind,
)

from sessiond.ingest import Ingest
from sessiond.sourcekit.base import Retire
from sessiond.sources.gemini.chat import GeminiParser
from sessiond.writing.transaction import Store


@pytest.fixture
def world(tmp_path):
    return GeminiWorld(tmp_path)


@pytest.fixture
def rollbacks(monkeypatch):
    """Make records `{"back": N}` take back the last N prompts, as in logs of other agents."""
    parse = GeminiParser.parse

    def parse_more(self, value):
        record = parse(self, value)
        if "back" in value:
            record.retires.append(Retire(prompts=value["back"]))
            record.warnings.clear()
        return record

    monkeypatch.setattr(GeminiParser, "parse", parse_more)


def written(world, *records, session=SESSION):
    world.log(session).write_bytes(encoded(header(session), *records))
    world.ingest()


def test_a_replaced_record_is_neither_shown_nor_counted_nor_found(world):
    """The line stays in the archive; its event leaves the session, its counts and the search."""
    written(world, prompt(1, "apples"), answer(2, "pears"), prompt(1, "plums"))
    assert world.texts() == ["pears", "plums"]
    assert world.sql("SELECT records, events, prompts FROM sessions") == [(4, 2, 1)]
    assert world.sql("SELECT native_id, superseded FROM records WHERE superseded") == [
        (prompt(1, "")["id"], 1)
    ]
    found = world.run("sess", "search", "apples", "--no-sync")
    assert (found.stdout, found.returncode) == ("", 1)
    assert "plums" in world.run("sess", "search", "plums", "--no-sync", check=0).stdout
    assert world.restored(world.log()) == world.log().read_bytes()
    world.check()


def test_statistics_leave_out_replaced_and_retired_calls(world):
    """A replaced call and one that was taken back do not count as calls; their tokens count."""
    written(
        world,
        answer(1, "", toolCalls=[call(1, "ls", status="executing")]),
        answer(1, "", toolCalls=[call(1, "ls", "a", status="error")], tokens={"output": 3}),
        prompt(2, "more"),
        answer(3, "", toolCalls=[call(3, "pwd", "/")], tokens={"output": 4}),
        rewind(2),
    )
    assert world.sql("SELECT tool_calls, prompts FROM sessions") == [(1, 0)]
    assert world.sql("SELECT count(*), sum(status = 'error') FROM v_calls") == [(1, 1)]
    assert world.sql("SELECT sum(output_tokens) FROM v_usage") == [(7,)]
    shown = world.run("sess", "stats", "tools", "--no-sync", check=0).stdout
    assert "run_shell_command" in shown


def test_a_rewind_takes_back_the_record_and_what_follows(world):
    written(
        world, prompt(1, "one"), answer(2, "two"), prompt(3, "three"), rewind(2), prompt(4, "4")
    )
    assert world.texts() == ["one", "4"]
    assert world.sql("SELECT events, prompts FROM sessions") == [(2, 2)]


def test_a_rewind_to_an_unknown_record_takes_everything_back(world):
    written(world, prompt(1, "one"), answer(2, "two"), rewind(99), prompt(3, "three"))
    assert world.texts() == ["three"]
    assert world.sql("SELECT events, prompts FROM sessions") == [(1, 1)]


@pytest.mark.parametrize(
    ("count", "left"), [(1, ["one", "two"]), (2, []), (9, [])], ids=["one", "all", "more"]
)
@pytest.mark.usefixtures("rollbacks")
def test_the_last_prompts_are_taken_back_with_their_answers(world, count, left):
    """All of them, if there are fewer than that."""
    records = (prompt(1, "one"), answer(2, "two"), prompt(3, "three"), answer(4, "four"))
    written(world, *records, {"back": count}, prompt(5, "five"))
    assert world.texts() == [*left, "five"]


@pytest.mark.usefixtures("rollbacks")
def test_prompts_that_were_taken_back_are_not_counted_again(world):
    written(
        world,
        *(prompt(number, str(number)) for number in (1, 2, 3)),
        {"back": 1},
        {"back": 1},
        prompt(4, "4"),
    )
    assert world.texts() == ["1", "4"]


def test_a_rewritten_file_without_the_operation_brings_the_records_back(world):
    """They keep their events."""
    records = (prompt(1, "one"), answer(2, "two"), prompt(3, "three"))
    written(world, *records, rewind(2))
    all_events = "SELECT e.id, text FROM events e JOIN event_texts USING (id)"
    before = world.sql(f"{all_events} ORDER BY 1")
    assert world.texts() == ["one"]
    written(world, *records)
    assert world.texts() == ["one", "two", "three"]
    assert world.sql("SELECT events, prompts FROM sessions") == [(3, 2)]
    assert world.sql(f"{all_events} WHERE retired = 0 ORDER BY 1") == before
    world.check()


@pytest.mark.parametrize("first", [SESSION, OTHER])
def test_a_copy_in_another_session_is_still_shown_there(world, first):
    """A record taken back in one session stays in the other, whichever is read first."""
    records = (prompt(1, "one"), answer(2, "two"))
    logs = {SESSION: (*records, rewind(2)), OTHER: records}
    for session in sorted(logs, key=lambda session: session != first):
        written(world, *logs[session], session=session)
    assert world.texts(SESSION) == ["one"]
    assert world.texts(OTHER) == ["one", "two"]
    assert world.sql("SELECT native_id, events, prompts FROM sessions ORDER BY 1") == [
        (SESSION, 1, 1),
        (OTHER, 2, 1),
    ]
    world.check()


def test_the_title_is_the_first_prompt_that_remains(world):
    """A prompt that was taken back or replaced no longer names the session."""
    written(world, prompt(1, "a mistake"), rewind(1), prompt(2, "the question"))
    assert world.sql("SELECT title, first_prompt FROM sessions") == [("the question",) * 2]


def steps_to_load(world, count):
    """Thousands of SQLite VM steps to load a log in which every record is written twice."""
    records = []
    for number in range(1, count + 1):
        for output in (None, "done"):
            step = call(number, f"step {number}", output, status="success" if output else "x")
            records.append(answer(number, "", toolCalls=[step], tokens={"output": number}))
    world.log().write_bytes(encoded(header(), *records))
    world.state.mkdir(mode=0o700)
    taken = []

    def go_on():
        taken.append(1)
        return False

    with closing(opened(world.state / "index.db")) as db:
        db.set_progress_handler(go_on, 1000)
        Ingest(Store(db)).reconcile(world.places())
    assert world.sql("SELECT events, tool_calls FROM sessions") == [(count, count)]
    return len(taken)


def test_the_work_grows_with_the_log_and_not_faster(tmp_path):
    """Four times the records, each written twice, take about four times the work."""
    few = steps_to_load(GeminiWorld(tmp_path / "few"), 500)
    many = steps_to_load(GeminiWorld(tmp_path / "many"), 2000)
    assert many < 6 * few


# -- random logs, read in random chunks

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["user", "gemini", "call", "again", "rewind", "lost", "set"]),
        st.integers(0, 11),
    ),
    max_size=24,
)


def log_of(steps):
    """Records, and the texts that the session must show after them."""
    records = []
    shown: dict[int, str] = {}
    for number, (kind, at) in enumerate(steps, 1):
        known = list(shown)
        if kind == "user":
            records.append(prompt(number, f"p{number}"))
            shown[number] = f"p{number}"
        elif kind == "gemini":
            records.append(answer(number, f"a{number}", tokens={"output": number}))
            shown[number] = f"a{number}"
        elif kind == "call":
            records.append(answer(number, "", toolCalls=[call(number, f"c{number}", status="x")]))
            shown[number] = f"c{number}"
        elif kind == "again" and known:
            which = known[at % len(known)]
            ended = call(which, f"c{which}", f"out{number}")
            records.append(answer(which, "", toolCalls=[ended]))
            del shown[which]
            shown[which] = f"c{which}out{number}"
        elif kind == "rewind" and known:
            which = known[at % len(known)]
            records.append(rewind(which))
            shown = {key: shown[key] for key in known[: known.index(which)]}
        elif kind == "lost":
            records.append(rewind(4000))
            shown = {}
        elif kind == "set":
            records.append(
                {"$set": {"messages": [message("user", 1, "not said")]}} if known else {}
            )
    return records, list(shown.values())


@settings(max_examples=amount(8, 75), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=OPERATIONS, seed=st.integers(0, 1 << 16))
def test_any_log_in_any_chunks_gives_the_same_index(tmp_path_factory, steps, seed):
    """The index is that of a single read, and shows what a simple model predicts."""
    records, expected = log_of(steps)
    data = encoded(header(), *records)
    clean = GeminiWorld(tmp_path_factory.mktemp("clean"))
    clean.log().write_bytes(data)
    clean.ingest()
    grown = GeminiWorld(tmp_path_factory.mktemp("grown"))
    rng, at = random.Random(seed), 0
    while at < len(data):
        end = min(len(data), at + rng.randint(1, max(1, len(data) // 2)))
        with grown.log().open("ab") as log:
            log.write(data[at:end])
        grown.ingest(settle=False)
        at = end
    grown.ingest()
    assert clean.texts() == grown.texts() == expected
    assert clean.dump() == grown.dump()
    prompts = sum(text.startswith("p") for text in expected)
    calls = sum(text.startswith("c") for text in expected)
    assert clean.sql("SELECT events, prompts, tool_calls FROM sessions") == [
        (len(expected), prompts, calls)
    ]
    clean.check()
