"""`sess cut` and `sess undo` on transcripts: what goes, what stays, and what search finds then."""

from __future__ import annotations

import json
import os
from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.cli.edit.conftest import rest
from tests.conftest import World
from tests.waiting import wait_until

from sess_cli.edit import cutting, undoing
from sess_cli.edit.plan import closure, parse_range, plan
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.ids import EventId, SessionId
from sess_schema.queries import transcripts
from sess_schema.queries.transcripts import Call, Edge, Record, Transcript

SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def talk(world):
    """A conversation with parallel calls that are answered in one line, and a chain of parents."""
    t = world.transcript()
    two = [
        {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "c3", "name": "Read", "input": {"file_path": "/a"}},
    ]
    both = [
        {"type": "tool_result", "tool_use_id": "c2", "content": "zanzibar"},
        {"type": "tool_result", "tool_use_id": "c3", "content": "mombasa"},
    ]
    said = [
        t.prompt("look at the quagmire"),
        t.call("c1", command="cat quagmire"),
        t.result("c1", "so much mud"),
        t.answer("It is muddy."),
        t.assistant(two),
        t.record("user", {"role": "user", "content": both}),
        t.answer("Done."),
    ]
    for before, after in pairwise(said):
        after["parentUuid"] = before["uuid"]
    t.append(*said)
    rest(t.path)
    return t


def lines(path):
    return path.read_bytes().splitlines(keepends=True)


def test_a_cut_takes_the_results_with_it_and_undo_brings_them_back(world, talk):
    """The other lines are the same bytes; search finds the text only before and after."""
    before = lines(talk.path)
    world.run("sess", "search", "mud", check=0)
    done = world.run("sess", "cut", SESSION, "2", "--no-relink", "--force", "--yes", check=0)
    assert "2 records to cut, 1 of them because they belong to others" in done.stdout
    assert lines(talk.path) == before[:1] + before[3:]
    world.run("sess", "search", "mud", check=1)
    world.run("sess", "search", "muddy", check=0)
    world.run("sess", "undo", check=0)
    assert lines(talk.path) == before
    world.run("sess", "search", "mud", check=0)
    world.run("sess", "undo", "--redo", check=0)
    assert lines(talk.path) == before[:1] + before[3:]
    world.check()


def test_numbers_may_be_arguments_of_their_own(world, talk):
    """`1 4` is `1,4`, as the usage says."""
    before = lines(talk.path)
    world.run("sess", "cut", SESSION, "1", "4", "7", "--yes", check=0)
    assert len(lines(talk.path)) == len(before) - 3


def test_the_running_daemon_has_read_the_change_when_the_command_ends(world, talk):
    """Search finds the text no more after a cut, and again after undo, at once."""
    daemon = world.start()
    try:
        wait_until(lambda: world.run("sess", "search", "quagmire").returncode == 0)
        world.run("sess", "cut", SESSION, "--match", "quagmire", "--yes", check=0)
        world.run("sess", "search", "quagmire", check=1)
        world.run("sess", "undo", SESSION, check=0)
        world.run("sess", "search", "quagmire", check=0)
    finally:
        daemon.terminate()
        daemon.wait()


def test_relink_changes_only_the_field_of_the_parent(world, talk):
    """A record whose parent goes follows the next one above that stays, without being asked to."""
    before = lines(talk.path)
    world.run("sess", "cut", SESSION, "2", "--yes", check=0)
    after = lines(talk.path)
    ids = [json.loads(line)["uuid"] for line in before]
    old, new = f'"parentUuid":"{ids[2]}"'.encode(), f'"parentUuid":"{ids[0]}"'.encode()
    assert after == [before[0], before[3].replace(old, new), *before[4:]]


def test_cuts_one_after_another_keep_the_chain(world, talk):
    """The index learns whom a record follows now, though it says the same as before."""
    ids = [json.loads(line)["uuid"] for line in lines(talk.path)]
    for number in (4, 3, 3):  # the answer; the call's result, then the calls with their results
        world.run("sess", "cut", SESSION, str(number), "--force", "--yes", check=0)
    left = [json.loads(line) for line in lines(talk.path)]
    assert [one["uuid"] for one in left] == [ids[0], ids[1], ids[6]]
    assert [one.get("parentUuid") for one in left] == [None, ids[0], ids[1]]
    follows = "SELECT parent_id FROM records WHERE retired = 0 ORDER BY offset"
    world.ingest()
    assert world.sql(follows) == [(None,), (ids[0],), (ids[1],)]


def test_warnings_refuse_a_cut(world, talk):
    """A call that loses its result, also one that a pulled-in record answers; and parents."""
    before = lines(talk.path)
    done = world.run("sess", "cut", SESSION, "6", "--no-relink", "--yes", check=2)
    assert [line for line in done.stdout.splitlines() if line.startswith("warning")] == [
        "warning: 5 calls Bash, and its result in 6 goes",
        "warning: 5 calls Read, and its result in 6 goes",
        "warning: 7 follows 6, which goes",
    ]
    assert done.stderr.splitlines() == [
        "sess: not cut because of 3 warnings",
        "hint: without `--no-relink`, records follow the ones that stay; `--force` cuts anyway",
    ]
    assert lines(talk.path) == before
    (told,) = [
        json.loads(line)
        for line in world.run(
            "sess", "cut", SESSION, "5", "--no-relink", "--dry-run", "--json", check=0
        ).stdout.splitlines()
    ]
    assert (told["chosen"], told["pulled"], told["done"]) == ([5], [6], False)
    assert [one["kind"] for one in told["warnings"]] == ["parentless"]
    assert lines(talk.path) == before


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["5-x"], 'not a number or range: "5-x"'),
        (["0"], "no record 0: there are 1 to 7"),
        (["6-9"], "no record 6-9: there are 1 to 7"),
        ([","], 'not a number or range: ""'),
        ([], "nothing to cut"),
        (["1-7"], "this would cut every record"),
        (["--match", "("], 'not a regular expression: "("'),
        (["--match", "nowhere"], 'no record matches "nowhere"'),
        (["--event", "ffffffff"], f"session {SESSION} has no event #ffffffff"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_line(world, talk, given, says):
    """Nothing is changed."""
    before = talk.path.read_bytes()
    done = world.run("sess", "cut", SESSION, *given, "--yes")
    assert done.returncode in (1, 2)
    assert done.stderr.splitlines()[0].startswith(f"sess: {says}")
    assert talk.path.read_bytes() == before


def test_ranges():
    """Spaces, reversed bounds and repeated numbers are understood."""
    assert parse_range(" 7-5, 9,6 ", 9) == {5, 6, 7, 9}


def test_an_event_is_cut_by_its_key(world, talk):
    """The key of a call names the record that makes it; its result follows."""
    world.ingest()
    shown = world.run("sess", "show", SESSION, "--json", check=0).stdout.splitlines()
    key = next(one["event"] for one in map(json.loads, shown) if one["tool"] == "Bash")
    before = lines(talk.path)
    world.run("sess", "cut", SESSION, "--event", f"{SESSION}#{key}", "-y", check=0)
    assert len(lines(talk.path)) == len(before) - 2


def test_nobody_is_asked_in_a_pipe(world, talk):
    """Without --yes nothing happens."""
    before = talk.path.read_bytes()
    done = world.run("sess", "cut", SESSION, "7", stdin=-3, check=2)
    assert done.stderr.splitlines()[0] == "sess: nobody to ask"
    assert talk.path.read_bytes() == before


def test_a_line_added_after_the_index_was_read_survives(world, talk, monkeypatch):
    """It is not in the plan, and stays at the end of the file."""
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    world.ingest()
    before = lines(talk.path)
    with closing(open_reader(world.state / "index.db")) as db:
        chosen = cutting.find_target(db, SESSION)
        cut = cutting.planned_cut(
            db, chosen, transcripts.read(db, chosen.source), [7], relink=False
        )
        talk.append(talk.prompt("one more thing"))
        edit, appended = cutting.perform(db, cut, force=True)
    assert appended == len(lines(talk.path)[-1])
    assert lines(talk.path)[:-1] == before[:6]
    assert b"one more thing" in lines(talk.path)[-1]
    undoing.undo(edit)
    assert lines(talk.path)[:-1] == before
    assert b"one more thing" in lines(talk.path)[-1]


def test_a_rewritten_file_is_read_and_planned_again(world, talk):
    """The numbers are looked up in the file as it is now."""
    world.ingest()
    talk.path.write_bytes(b"".join(lines(talk.path)[3:]))
    rest(talk.path)
    before = lines(talk.path)
    world.run("sess", "cut", SESSION, "1", "--yes", "--force", check=0)
    assert len(lines(talk.path)) == len(before) - 1


def test_records_are_numbered_by_their_place_in_the_file(world, talk):
    """Blank and broken lines and undated records stay where they are; blank ones do not count."""
    talk.append(b"\n", b"{broken\n", {"type": "summary", "summary": "Mud", "leafUuid": "x"})
    rest(talk.path)
    before = lines(talk.path)
    listed = world.run("sess", "records", SESSION, "--json", check=0).stdout.splitlines()
    assert [json.loads(line)["number"] for line in listed] == [*range(1, 10)]
    assert [json.loads(line)["role"] for line in listed] == [
        *("user", "assistant", "tool", "assistant", "assistant", "tool", "assistant"),
        *("system", "system"),
    ]
    world.run("sess", "cut", SESSION, "8", "--yes", check=0)
    assert lines(talk.path) == before[:8] + before[9:]


def test_one_of_two_records_in_a_line(world):
    """Its bytes go; the other one and the newline stay."""
    t = world.transcript()
    one, two = t.prompt("first half"), t.prompt("second half")
    t.append(t.prompt("before"), t.encode(one).rstrip() + t.encode(two), t.prompt("after"))
    rest(t.path)
    before = lines(t.path)
    world.run("sess", "cut", SESSION, "2", "--yes", check=0)
    assert lines(t.path) == [before[0], t.encode(two), before[2]]


# -- any transcript, any cut

_KINDS = st.sampled_from(
    ["prompt", "answer", "call", "calls", "result", "results", "broken", "blank"]
)
_SCRIPTS = st.lists(
    st.tuples(_KINDS, st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=14
)


def _record(t, kind, one, other):
    use = {"type": "tool_use", "name": "Bash", "input": {"command": "x"}}
    answer = {"type": "tool_result", "content": "y"}
    made = {
        "prompt": lambda: t.prompt("words"),
        "answer": lambda: t.answer("words"),
        "call": lambda: t.assistant([use | {"id": f"c{one}"}]),
        "calls": lambda: t.assistant([use | {"id": f"c{one}"}, use | {"id": f"c{other}"}]),
        "result": lambda: t.result(f"c{one}", "y"),
        "results": lambda: t.record(
            "user",
            {
                "role": "user",
                "content": [answer | {"tool_use_id": f"c{n}"} for n in dict.fromkeys((one, other))],
            },
        ),
        "broken": lambda: b'{"half\n',
        "blank": lambda: b"\n",
    }
    return made[kind]()


def _ids(line, type_, field):
    """Ids of calls or results in a line, read without our code."""
    try:
        content = json.loads(line)["message"]["content"]
    except (ValueError, KeyError):
        return set()
    return {one[field] for one in content if isinstance(one, dict) and one.get("type") == type_}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=_SCRIPTS, picks=st.lists(st.integers(0, 13), min_size=1, max_size=4))
def test_any_cut_of_any_transcript(tmp_path_factory, monkeypatch, script, picks):
    """No result is left without its call; the rest is the same bytes in order; undo is exact."""
    world = World(tmp_path_factory.mktemp("any"))
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    t = world.transcript()
    t.append(*(_record(t, *step) for step in script), t.prompt("the end"))
    rest(t.path)
    before = t.path.read_bytes()
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        chosen = cutting.find_target(db, SESSION)
        found = transcripts.read(db, chosen.source)
        seeds = {pick % len(found.records) + 1 for pick in picks} - {len(found.records)}
        assume(seeds)
        cut = cutting.planned_cut(db, chosen, found, seeds, relink=False)
        edit, appended = cutting.perform(db, cut, force=False)
    assert appended == 0
    written = [line for line in before.splitlines(keepends=True) if line.strip()]
    assert len(written) == len(found.records)
    kept = [line for number, line in enumerate(written, 1) if number not in cut.plan.gone]
    after = t.path.read_bytes()
    assert [line for line in after.splitlines(keepends=True) if line.strip()] == kept
    assert seeds <= cut.plan.gone
    calls = [_ids(line, "tool_use", "id") for line in written]
    results = [_ids(line, "tool_result", "tool_use_id") for line in written]
    for number, answered in enumerate(results, 1):
        for call in answered if number not in cut.plan.gone else ():
            makers = {n for n, made in enumerate(calls, 1) if call in made}
            assert not makers or makers - cut.plan.gone, (number, call)
    world.ingest()
    assert world.sql("SELECT count(*) FROM records WHERE retired = 0") == [(len(kept),)]
    undoing.undo(edit)
    assert t.path.read_bytes() == before


def _transcript(edges, count):
    transcript = [
        Record(n, n, SessionId(1), f"id{n}", None, "x", "user", None, 0, 0, n, 0)
        for n in range(1, count + 1)
    ]
    return Transcript(
        transcript, [Edge(a, b, Call(f"c{i}", None, EventId(i))) for i, (a, b) in enumerate(edges)]
    )


@given(
    edges=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=40),
    seeds=st.sets(st.integers(1, 12), min_size=1),
)
def test_the_closure_ends_on_any_graph(edges, seeds):
    """Cycles included; it has the seeds, follows every call, and adds nothing else."""
    transcript = _transcript(edges, 12)
    gone = closure(transcript, seeds, {})
    reached = set(seeds)
    for _ in range(12):
        reached |= {b for a, b in edges if a in reached}
    assert gone == reached
    assert closure(transcript, gone, {}) == gone
    for warning in plan(transcript, seeds).warnings:
        assert warning.number not in gone
        assert warning.about in gone


def test_a_cut_of_codex_takes_what_only_repeats_the_record(world):
    """The rollout says a prompt twice: as an item and as a notice."""
    folder = world.root / ".codex" / "sessions" / "2026" / "02" / "01"
    folder.mkdir(parents=True)
    name = "019f7000-0000-7000-8000-0000000000aa"
    path = folder / f"rollout-2026-02-01T10-00-00-{name}.jsonl"
    item = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "go west"}],
    }
    said = [
        ("session_meta", {"id": name, "cwd": "/code", "timestamp": "2026-02-01T10:00:00Z"}),
        ("response_item", item),
        ("event_msg", {"type": "user_message", "message": "go west"}),
        ("event_msg", {"type": "user_message", "message": "go east"}),
    ]
    path.write_text(
        "".join(
            json.dumps({"timestamp": "2026-02-01T10:00:01Z", "type": kind, "payload": value}) + "\n"
            for kind, value in said
        )
    )
    rest(path)
    before = lines(path)
    world.run("sess", "cut", name, "2", "--yes", check=0)
    assert lines(path) == [before[0], before[3]]


def test_relink_in_a_saved_session(world, talk):
    """A document with a list of the same records: only the field of the parent changes."""
    saved = world.root / "saved.json"
    records = [json.loads(line) | {"sessionId": SESSION[::-1]} for line in lines(talk.path)]
    saved.write_text(json.dumps({"loglines": records, "branch": "é"}, indent=1, ensure_ascii=False))
    rest(saved)
    talk.path.unlink()
    world.run("sess", "import", saved, check=0)
    world.run("sess", "cut", SESSION[::-1], "2", "--yes", check=0)
    after = json.loads(saved.read_text())
    records[3]["parentUuid"] = records[0]["uuid"]
    assert after == {"loglines": [records[0], *records[3:]], "branch": "é"}
    world.run("sess", "search", "muddy", check=0)
    world.run("sess", "search", "much", check=1)


def test_a_fork_that_has_the_record_too_is_named(world, talk):
    """Its file is not touched, so search finds the text there."""
    fork = world.transcript("22222222-2222-4222-8222-222222222222", "-fork")
    first = lines(talk.path)[0]
    fork.append(first.replace(SESSION.encode(), fork.session.encode()))
    rest(fork.path)
    done = world.run("sess", "cut", SESSION, "1", "--yes", check=0)
    note = f"note: {fork.session} has some of these records, too; search still finds them there"
    assert note in done.stderr.splitlines()
    found = world.run("sess", "search", "quagmire", "--json", check=0).stdout.splitlines()
    assert fork.session in {json.loads(line)["session"] for line in found}


def test_forgetting_a_session_removes_its_snapshots(world, talk):
    """What `sess undo` would bring back is text of the session as well."""
    world.run("sess", "cut", SESSION, "7", "--yes", check=0)
    assert len(list((world.state / "edits").glob("*.zst"))) == 1
    world.run("sess", "forget", SESSION, "--yes", check=0)
    assert [one.name for one in (world.state / "edits").iterdir()] == ["lock"]
    done = world.run("sess", "undo", check=1)
    assert done.stderr.splitlines()[0] == "sess: nothing to undo"


def test_a_transcript_that_is_gone_cannot_be_cut(world, talk):
    """The way back is named."""
    world.ingest()
    os.unlink(talk.path)
    done = world.run("sess", "cut", SESSION, "1", "--yes", check=1)
    assert done.stderr.splitlines()[1].startswith("hint: `sess restore --in-place`")
    with pytest.raises(SessError):
        undoing.last()
