"""`sess truncate`: the end of a session goes, from a prompt on, and can be brought back."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.continuing.continuing_worlds import SESSION, call, ingest, recorder
from tests.cli.edit.conftest import rest
from tests.conftest import World
from tests.waiting import wait_until

from sess_cli.edit import cutting
from sess_schema.connection import open_reader
from sess_schema.queries import transcripts


@pytest.fixture
def tea(world):
    """Three prompts, and records about the session between them."""
    with recorder(world) as record:
        record.system_prompt("Be brief.")
        record.user("first aardvark")
        record.mode("auto")
        call(record, "read", "c1", "one")
        record.user("second buffalo")
        record.todos([{"id": 1, "title": "x", "status": "done"}])
        record.entry({"type": "artifact", "artifact_title": "a picture"})
        record.entry({"type": "provider_tool_operation", "operation_id": "o1"})
        record.assistant("two")
        record.user("third capybara")
        record.mode("plan")
    path = Path(record.path)
    rest(path)
    return path


def truncate(world, count, *arguments, session=SESSION, check=0):
    given = ("truncate", session, "--before-user", str(count), *arguments)
    return world.run("sess", *given, check=check)


def types(path):
    return [json.loads(line)["type"] for line in path.read_bytes().splitlines()]


def test_what_is_before_a_prompt_stays_byte_for_byte(world, tea):
    """With records about the session itself; its id, its list and its file stay, and it goes on."""
    before = tea.read_bytes().splitlines(keepends=True)
    listed = (tea.parent / "session.json").read_bytes()
    done = truncate(world, 1, "--yes")
    assert tea.read_bytes().splitlines(keepends=True) == [*before[:6], *before[8:10], before[12]]
    assert done.stderr.startswith("cut 4 records, about ")
    assert (tea.parent / "session.json").read_bytes() == listed
    with recorder(world) as record:
        record.user("instead a dingo")
    assert types(tea) == [
        "session_start", "system_prompt", "user", "mode_change", "tool_call", "tool_result",
        "artifact", "provider_tool_operation", "mode_change", "user",
    ]  # fmt: skip


def test_search_follows_at_once(world, tea):
    """Without a daemon the next command reads the change; undo is found again."""
    world.run("sess", "search", "capybara", check=0)
    truncate(world, 2, "--yes")
    world.run("sess", "search", "capybara", check=1)
    world.run("sess", "search", "buffalo", check=0)
    world.run("sess", "undo", SESSION, check=0)
    world.run("sess", "search", "capybara", check=0)


@pytest.mark.slow
def test_the_running_daemon_follows_at_once(world, tea):
    """The command ends when the daemon has read the change."""
    daemon = world.start()
    try:
        wait_until(lambda: world.run("sess", "search", "capybara").returncode == 0)
        truncate(world, 2, "--yes")
        world.run("sess", "search", "capybara", check=1)
        world.run("sess", "undo", SESSION, check=0)
        world.run("sess", "search", "capybara", check=0)
        world.run("sess", "rm", SESSION, "--yes", check=0)
        listed = world.run("sess", "list", "--json", check=0).stdout
        assert json.loads(listed)["source_gone"] is True
        world.run("sess", "undo", SESSION, check=0)
        assert json.loads(world.run("sess", "list", "--json").stdout)["source_gone"] is False
    finally:
        daemon.terminate()
        daemon.wait()


def test_undo_is_the_identity(world, tea):
    """The same bytes, whatever was taken out."""
    before = tea.read_bytes()
    for count in (2, 0):
        truncate(world, count, "--yes")
        assert tea.read_bytes() != before
        world.run("sess", "undo", check=0)
        assert tea.read_bytes() == before


def test_nothing_of_the_conversation_is_left_at_zero(world, tea):
    """The header, and what is about the session; the system prompt goes, too."""
    truncate(world, 0, "--yes")
    assert types(tea) == [
        "session_start", "mode_change", "artifact", "provider_tool_operation", "mode_change",
    ]  # fmt: skip


def test_a_count_that_keeps_everything_changes_nothing(world, tea):
    """It is no error; neither is a dry run."""
    before = tea.read_bytes()
    done = truncate(world, 3)
    assert done.stderr == "the session has no more than 3 prompts: nothing to do\n"
    shown = truncate(world, 2, "--dry-run").stdout.splitlines()
    assert shown[0] == "1 record to cut:"
    assert "third capybara" in shown[1]
    assert tea.read_bytes() == before


@pytest.mark.parametrize(
    ("given_id", "code", "reason"),
    [
        ("", 2, "the ID is empty"),
        ("..", 2, '".." is a directory, not an ID'),
        ("../x", 2, '".." is a directory, not an ID'),
        ("/etc/passwd", 2, 'the ID "/etc/passwd" contains a path separator'),
        ("a\\b", 2, 'the ID "a\\b" contains a path separator'),
        ("a..b", 2, 'the ID "a..b" contains ".."'),
        ("unknown", 1, 'no such session: "unknown"'),
    ],
)
def test_ids_are_checked_before_anything_else(world, tea, given_id, code, reason):
    """Each with its own reason, for both commands."""
    before = tea.read_bytes()
    truncated = truncate(world, 0, "--yes", session=given_id, check=code)
    removed = world.run("sess", "rm", given_id, "--yes", check=code)
    assert truncated.stderr.splitlines()[0] == f"sess: {reason}"
    assert removed.stderr == truncated.stderr
    assert tea.read_bytes() == before


def test_a_line_that_cannot_be_read_stops_it(world, tea):
    """The file is not touched: nobody knows where such a line belongs."""
    with tea.open("ab") as file:
        file.write(b"{broken\n")
    rest(tea)
    before = tea.read_bytes()
    done = truncate(world, 1, "--yes", check=2)
    assert done.stderr == (
        f'sess: line 14 of "{tea}" cannot be read; nothing was changed\n'
        "hint: `sess cut` works on such a file, too\n"
    )
    assert tea.read_bytes() == before


def test_nobody_is_there_to_ask(world, tea):
    """In a pipe, --yes is needed."""
    done = truncate(world, 1, check=2)
    assert done.stderr == "sess: nobody to ask\nhint: `--yes` cuts without asking\n"


def test_a_subagent_is_not_truncated(world, tea):
    """Its leader is."""
    with recorder(world) as record:
        record.subagent_start("look")
        record.assistant("seen")
        record.subagent_result("look")
    rest(tea)
    done = truncate(world, 0, "--yes", session=f"{SESSION}/1-look", check=2)
    assert done.stderr.startswith("sess: a subagent's session cannot be truncated\n")


def test_claude_code(world):
    """A chain of parents ends where it is cut; a title that a person gave stays."""
    log = world.transcript()
    said = [log.prompt("one"), log.answer("a"), log.prompt("two"), log.answer("b")]
    for before, after in pairwise(said):
        after["parentUuid"] = before["uuid"]
    title = {"type": "custom-title", "customTitle": "Tea", "sessionId": log.session}
    log.append(*said, title)
    rest(log.path)
    lines = log.path.read_bytes().splitlines(keepends=True)
    truncate(world, 1, "--yes", session=log.session)
    assert log.path.read_bytes().splitlines(keepends=True) == [*lines[:2], lines[4]]


HAPPENINGS = st.lists(
    st.one_of(
        st.just(("user", "")),
        st.just(("assistant", "")),
        st.just(("mode", "")),
        st.tuples(st.just("call"), st.sampled_from(["c1", "c2", "c3"])),
        st.tuples(st.just("result"), st.sampled_from(["c1", "c2", "c3"])),
    ),
    max_size=20,
)


@settings(max_examples=25)
@given(HAPPENINGS, st.integers(0, 5))
def test_any_truncation_is_sound(tmp_path_factory, happenings, count):
    """As many prompts stay as were asked for, no result is left without its call, none is lost."""
    world = World(tmp_path_factory.mktemp("any"))
    with recorder(world) as record:
        record.user("begin")
        for what, value in happenings:
            if what == "call":
                record.tool_call("read", {}, value)
            elif what == "result":
                record.tool_result("read", "out", value)
            else:
                getattr(record, what)("words")
    ingest(world)
    with closing(open_reader(world.state / "index.db")) as db:
        found = cutting.find_target(db, SESSION)
        transcript = transcripts.read(db, found.source)
        prompts = [record.number for record in transcript.records if record.kind == "user"]
        cut = cutting.planned_truncation(db, found, transcript, count)
    if cut is None:
        assert len(prompts) <= count
        return
    gone = cut.plan.gone
    assert [number for number in prompts if number not in gone] == prompts[:count]
    first = prompts[count] if count else 1
    answers = {edge.answer for edge in transcript.edges if edge.caller in gone}
    assert {number for number in gone if number < first} <= answers  # before their calls
    assert cut.warnings == []
    for edge in transcript.edges:
        assert (edge.caller in gone) == (edge.answer in gone)
    assert not any(transcript.at(number).kind == "mode_change" for number in gone)


def test_a_long_end_is_not_listed_in_full(world):
    """Its first and last records are; --json has them all."""
    log = world.transcript()
    log.append(*(log.prompt(f"prompt {number}") for number in range(150)))
    rest(log.path)
    shown = truncate(world, 1, "--dry-run", session=log.session).stdout.splitlines()
    assert (len(shown), shown[0]) == (53, "149 records to cut:")
    assert shown[41] == "   … 99 more; --json lists them all"
    (found,) = map(
        json.loads,
        truncate(world, 1, "--dry-run", "--json", session=log.session).stdout.splitlines(),
    )
    assert len(found["records"]) == 149
