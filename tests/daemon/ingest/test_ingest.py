"""What a pass makes of transcripts: joined calls, copies owned once, odd bytes, nothing lost."""

from __future__ import annotations

import json
import os
from contextlib import closing

import pytest
from tests.conftest import opened

from sess_schema import labels
from sess_schema.connection import open_writer
from sess_schema.queries import sources
from sess_schema.search_index import FAILED
from sessiond.ingest import Ingest, passes
from sessiond.writing import record_rows
from sessiond.writing.transaction import Batch, Store


def test_a_call_is_joined_with_a_result_of_a_later_pass(world):
    """The call is pending until its result comes, days and restarts later; then one event."""
    t = world.transcript()
    t.append(t.prompt("run the tests"), t.call("toolu_1", command="go test ./..."))
    world.ingest()
    assert world.shown(t.session)[-1] == ("tool_use", "go test ./...", "pending")
    t.append(t.result("toolu_1", "FAIL: TestParse", is_error=True))
    world.ingest()
    assert world.shown(t.session) == [
        ("user", "run the tests", None),
        ("tool_use", "go test ./...FAIL: TestParse", "error"),
    ]
    assert world.sql("SELECT duration_ms FROM events WHERE type = 'tool_use'") == [(1000,)]
    assert len(world.found(f'"{FAILED}"')) == 1
    assert len(world.found("TestParse")) == 1
    world.check()


def test_a_result_before_its_call_is_one_event_in_the_end(world):
    """An orphan result is kept and completed when the call turns up, in the same pass or later."""
    t = world.transcript()
    call, result = t.call("toolu_1", command="ls"), t.result("toolu_1", "README.md")
    t.append(result)
    world.ingest()
    assert world.sql("SELECT unjoined, tool, status FROM events") == [("orphan", None, "ok")]
    t.append(call)
    world.ingest()
    assert world.sql("SELECT label, tool, status, summary FROM events") == [
        (None, "Bash", "ok", "ls")
    ]
    assert len(world.found("README")) == 1
    world.check()


def test_usage_counts_a_response_once_however_many_lines_it_has(world):
    """Streaming fragments of one message give one row with the largest output."""
    t = world.transcript()
    for tokens in (1, 50, 100):
        block = {"type": "text", "text": f"part {tokens}"}
        t.append(t.assistant([block], message_id="msg_1", output_tokens=tokens))
        world.ingest()
    assert world.sql("SELECT message_id, output_tokens FROM usage") == [("msg_1", 100)]


@pytest.mark.parametrize("fork_first", [False, True], ids=["original first", "fork first"])
def test_a_fork_is_owned_once_and_shown_in_both(world, fork_first):
    """Copied lines belong to the session that began first, whatever is read first."""
    original = world.transcript("aaaaaaaa-1111-4111-8111-111111111111")
    lines = [
        original.prompt("where is the parser"),
        original.call("toolu_1", command="grep -r parser"),
        original.result("toolu_1", "src/parser.py"),
    ]
    fork = world.transcript("bbbbbbbb-1111-4111-8111-111111111111")
    copies = [{**line, "sessionId": fork.session, "sessionKind": "bg"} for line in lines]
    fork.count = 10
    own = fork.prompt("go on here")
    first, second = (fork, original) if fork_first else (original, fork)
    for transcript in (first, second):
        if transcript is original:
            original.append(*lines)
        else:
            fork.append(*copies, own)
        world.ingest()
    assert len(world.shown(original.session)) == 2
    assert [text for _, text, _ in world.shown(fork.session)] == [
        "where is the parser",
        "grep -r parsersrc/parser.py",
        "go on here",
    ]
    assert len(world.found("parser")) == 2
    assert world.sql("SELECT count(*) FROM usage") == [(1,)]
    owners = world.sql("SELECT DISTINCT native_id FROM events JOIN sessions s ON s.id = session_id")
    assert sorted(owners) == [(original.session,), (fork.session,)]
    assert world.sql("SELECT native_id, events, prompts, tool_calls FROM sessions ORDER BY 1") == [
        (original.session, 2, 1, 1),
        (fork.session, 3, 2, 1),
    ]
    world.check()


def test_a_fork_may_answer_a_call_that_the_original_left_open(world):
    """The result in the fork joins the shared call."""
    original = world.transcript("aaaaaaaa-1111-4111-8111-111111111111")
    call = original.call("toolu_1", command="sleep 9")
    original.append(original.prompt("wait"), call)
    fork = world.transcript("bbbbbbbb-1111-4111-8111-111111111111")
    fork.count = 10
    fork.append({**call, "sessionId": fork.session}, fork.result("toolu_1", "done at last"))
    world.ingest()
    assert world.shown(original.session)[-1] == ("tool_use", "sleep 9done at last", "ok")
    assert world.sql("SELECT count(*) FROM events WHERE type = 'tool_use'") == [(1,)]


def test_a_replay_with_new_uuids_is_the_same_record(world):
    """A compaction may write preserved messages again under new uuids and their old times."""
    t = world.transcript()
    call, result = t.call("toolu_1", command="ls"), t.result("toolu_1", "a b c")
    t.append(call, result, t.prompt("/compact"))
    t.append({**call, "uuid": "new-1"}, {**result, "uuid": "new-2"})
    world.ingest()
    t.append({**call, "uuid": "new-3"}, {**result, "uuid": "new-4"})
    world.ingest()
    assert world.shown(t.session) == [("tool_use", "lsa b c", "ok"), ("user", "/compact", None)]
    assert world.sql("SELECT count(*) FROM records") == [(7,)]


def test_a_hard_link_is_found_once(world):
    """The same session under two paths is one session with each event once."""
    t = world.transcript()
    t.append(t.prompt("hello twice"))
    twin = world.projects / "-other" / t.path.name
    twin.parent.mkdir()
    os.link(t.path, twin)
    world.ingest()
    assert world.shown(t.session) == [("user", "hello twice", None)]
    assert world.sql("SELECT events FROM sessions") == [(1,)]
    assert len(world.found("twice")) == 1


def test_text_anywhere_in_a_large_output_is_found(world):
    """Nothing is cut: a word after five megabytes of output is in the index."""
    t = world.transcript()
    output = "noise " * 900_000 + "needleword " + "noise " * 1000
    t.append(t.call("toolu_1", command="cat big"), t.result("toolu_1", output))
    world.ingest()
    assert len(world.found("needleword")) == 1


def test_colours_do_not_hide_words(world):
    """A word right behind an escape sequence is found; the archive keeps the sequence."""
    t = world.transcript()
    t.append(t.call("c", command="pytest"), t.result("c", "\x1b[31mFAILED\x1b[0m test_x"))
    world.ingest()
    assert world.found("FAILED") == ["pytestFAILED test_x"]
    assert world.restored(t.path) == t.path.read_bytes()


def test_overflowed_output_is_read_in_full_whenever_its_file_comes(world):
    """A result that names a file in tool-results has that file's text, before or after it."""
    t = world.transcript()
    folder = t.path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    note = "<persisted-output>\nFull output saved to: /gone/{}/tool-results/{}\n</persisted-output>"
    (folder / "early.txt").write_text("the early full text")
    t.append(
        t.call("c1", command="one"),
        t.result("c1", note.format(t.session, "early.txt")),
        t.call("c2", command="two"),
        t.result("c2", note.format(t.session, "late.txt")),
    )
    world.ingest()
    assert world.shown(t.session)[0][1] == "onethe early full text"
    (folder / "late.txt").write_text("the late full text")
    world.ingest()
    assert [text for _, text, _ in world.shown(t.session)] == [
        "onethe early full text",
        "twothe late full text",
    ]
    assert world.restored(folder / "late.txt") == b"the late full text"
    world.check()


def said(content: bytes) -> bytes:
    """A user record with the given bytes as its content."""
    return b'{"type":"user","uuid":"u","message":{"role":"user","content":"' + content + b'"}}'


ODD_LINES = {
    "half line": b'{"type":"user","mess',
    "bad UTF-8": said(b"caf\xe9 ok"),
    "lone surrogate": said(b"\\ud800 ok"),
    "NUL run": b"\0" * 5000 + said(b"ok"),
    "NUL inside": said(b"a\\u0000 ok"),
    "deep nesting": b"[" * 100_000 + b"]" * 100_000,
    "huge number": b'{"type":"user","uuid":"u","n":' + b"9" * 5000 + b"}",
    "bare scalar": b"42",
    "not a number": b'{"type":"user","uuid":"u","n":NaN}',
    "binary": bytes(range(1, 10)) + bytes(range(11, 256)),
    "glued": b'{"type":"mode","timestamp":"x"}' + said(b"ok"),
    "torn and glued": b'{"type":"user","uuid":"x","message":{"rol' + said(b"ok"),
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES.keys())
def test_an_odd_line_costs_only_itself(world, line):
    """Whatever stands two good lines: both are read, it is a record, the bytes come back."""
    t = world.transcript()
    t.append(t.prompt("before"), line + b"\n", t.prompt("after"))
    world.ingest()
    texts = [text for kind, text, _ in world.shown(t.session) if kind == "user"]
    assert texts[0] == "before"
    assert texts[-1] == "after"
    if b"ok" in line:
        assert any(text.endswith("ok") for text in texts[1:-1])
    assert world.sql("SELECT DISTINCT line FROM records ORDER BY 1") == [(1,), (2,), (3,)]
    assert world.restored(t.path) == t.path.read_bytes()
    world.check()


def test_bad_lines_are_counted_with_line_and_preview(world):
    """Three bad lines of five: three warnings with line numbers and the first 100 characters."""
    t = world.transcript()
    bad = b"x" * 300 + b"\n"
    t.append(t.prompt("one"), bad, b"{\n", t.prompt("two"), b"nope\n", b"\n", b"  \n")
    world.ingest()
    assert world.sql("SELECT line, length(preview) FROM warnings ORDER BY line") == [
        (2, 100),
        (3, 1),
        (5, 4),
    ]
    assert world.sql("SELECT lines, blank_lines FROM sources") == [(7, 2)]


def test_a_line_that_is_being_written_is_not_reported(world):
    """The daemon gives a half line time to become whole before it archives and names it."""
    t = world.transcript()
    t.append(t.prompt("whole"), b'{"half')
    world.ingest(settle=False)
    assert world.sql("SELECT reason FROM warnings") == []
    assert world.sql("SELECT count(*) FROM chunks") == [(1,)]


def test_an_unfinished_last_line_waits_and_is_read_once(world):
    """It is invisible until it is whole; the archive has its bytes; its newline may come later."""
    t = world.transcript()
    t.append(t.prompt("first"))
    second = t.encode(t.prompt("second"))
    t.append(second[:40])
    world.ingest()
    assert world.sql("SELECT line, reason FROM warnings") == [(2, "unfinished last line")]
    assert world.restored(t.path) == t.path.read_bytes()
    t.append(second[40:-1])
    world.ingest()
    assert [text for _, text, _ in world.shown(t.session)] == ["first", "second"]
    assert world.sql("SELECT count(*) FROM warnings") == [(0,)]
    t.append(b"\n", t.prompt("third"))
    world.ingest()
    assert [text for _, text, _ in world.shown(t.session)] == ["first", "second", "third"]
    assert world.sql("SELECT lines, blank_lines FROM sources") == [(3, 0)]
    assert world.restored(t.path) == t.path.read_bytes()


def test_a_line_too_long_to_parse_is_kept_and_the_rest_is_read(world):
    """A 40 MB line is a record with a warning; the next line is searchable, the bytes come back."""
    t = world.transcript()
    t.append(t.prompt("before"), b'{"x":"' + b"y" * (40 << 20) + b'"}\n', t.prompt("after"))
    world.ingest()
    assert world.sql("SELECT line, kind, length FROM records ORDER BY line") == [
        (1, "user", world.sql("SELECT length FROM records WHERE line = 1")[0][0]),
        (2, "oversize", (40 << 20) + 8),
        (3, "user", world.sql("SELECT length FROM records WHERE line = 3")[0][0]),
    ]
    assert world.sql("SELECT reason FROM warnings") == [
        ("line of 40 MiB is archived but not searchable",)
    ]
    assert world.sql("SELECT label FROM events WHERE type = 'system'") == [(labels.OVERSIZE,)]
    assert world.restored(t.path) == t.path.read_bytes()


@pytest.mark.parametrize("name", ["agent-abc", "flat"])
def test_subagents_know_their_parent_and_the_call(world, name):
    """Both file layouts link the subagent to its parent session and to the call."""
    t = world.transcript()
    t.append(
        t.call("toolu_task", tool="Task", prompt="look around", description="Look"),
        t.result("toolu_task", "all fine", toolUseResult={"agentId": "abc"}),
    )
    folder = t.path.parent if name == "flat" else t.path.with_suffix("") / "subagents"
    child = type(t)(folder / "agent-abc.jsonl", t.session)
    child.append(child.prompt("look around", isSidechain=True, agentId="abc"))
    world.ingest()
    assert world.sql(
        "SELECT c.native_id, p.native_id, c.call_id, c.kind FROM sessions c"
        " JOIN sessions p ON p.id = c.parent_id"
    ) == [("agent-abc", t.session, "toolu_task", "subagent")]


def test_a_sidechain_inside_the_main_file_is_a_subagent(world):
    """The oldest layout: chained records in the parent's file, linked by their first prompt."""
    t = world.transcript()
    t.append(t.prompt("main prompt"), t.call("toolu_t", tool="Task", prompt="dig deep"))
    root = t.prompt("dig deep", isSidechain=True, parentUuid=None)
    t.append(root)
    world.ingest()
    reply = t.answer("dug", isSidechain=True, parentUuid=root["uuid"])
    t.append(reply, t.result("toolu_t", "dug"))
    world.ingest()
    assert world.sql("SELECT call_id, events FROM sessions WHERE kind = 'subagent'") == [
        ("toolu_t", 2)
    ]
    assert [text for _, text, _ in world.shown(t.session)] == ["main prompt", "dig deepdug"]


def test_titles_go_by_precedence_and_to_the_right_session(world):
    """custom > ai > summary > first prompt; a summary of another session's leaf is its title."""
    old = world.transcript("aaaaaaaa-1111-4111-8111-111111111111")
    leaf = old.answer("the end")
    new = world.transcript("bbbbbbbb-1111-4111-8111-111111111111")
    new.append(
        {"type": "summary", "summary": "Title of the old one", "leafUuid": leaf["uuid"]},
        new.prompt("first words"),
    )
    world.ingest()
    old.append(old.prompt("old words"), leaf)
    world.ingest()
    titles = dict(world.sql("SELECT native_id, title FROM sessions"))
    assert titles == {old.session: "Title of the old one", new.session: "first words"}
    for kind, key in (("ai-title", "aiTitle"), ("custom-title", "customTitle")):
        new.append({"type": kind, key: f"by {kind}", "sessionId": new.session})
    new.append({"type": "ai-title", "aiTitle": "later", "sessionId": new.session})
    world.ingest()
    assert dict(world.sql("SELECT native_id, title FROM sessions"))[new.session] == (
        "by custom-title"
    )


def test_files_and_commits_of_tool_calls_are_kept(world):
    """An edit names its file, a commit its hash, branch and subject."""
    t = world.transcript()
    t.append(
        t.call("c1", tool="Edit", file_path="/code/a.py", old_string="x", new_string="y"),
        t.result("c1", "ok"),
        t.call("c2", command="git commit -m fix"),
        t.result("c2", "[main 1a2b3c4] fix the parser\n 1 file changed"),
    )
    world.ingest()
    assert world.sql("SELECT path, action FROM files") == [("/code/a.py", "edit")]
    assert world.sql("SELECT sha, branch, subject FROM commits") == [
        ("1a2b3c4", "main", "fix the parser")
    ]


def test_structured_input_can_be_read_back_from_the_archive(world):
    """The pointer of a call leads to its input inside the archived record."""
    t = world.transcript()
    t.append(t.call("c1", tool="mcp__x__y", deep={"list": [1, {"k": "v"}]}))
    world.ingest()
    [(pointer,)] = world.sql("SELECT pointer FROM events")
    value = json.loads(t.path.read_text())
    for step in pointer.split("/")[1:]:
        value = value[int(step)] if isinstance(value, list) else value[step]
    assert value == {"deep": {"list": [1, {"k": "v"}]}}


def test_call_ids_that_are_used_again_are_other_calls(world):
    """Some gateways count calls from zero in every answer and in every session."""
    for session in ("aaaaaaaa", "bbbbbbbb"):
        t = world.transcript(f"{session}-1111-4111-8111-111111111111")
        for number in range(3):
            t.append(t.call("call_0", command=f"{session} {number}"))
            t.append(t.result("call_0", f"answer {number}"))
            world.ingest()
        assert [text for _, text, _ in world.shown(t.session)] == [
            f"{session} {number}answer {number}" for number in range(3)
        ]


def test_an_output_too_long_to_search_whole_is_archived_whole(world, monkeypatch):
    """The text ends at the limit with a warning; the file comes back to the last byte."""
    monkeypatch.setattr(record_rows, "LONGEST_ATTACHMENT", 1 << 20)
    t = world.transcript()
    file = t.path.with_suffix("") / "tool-results" / "big.txt"
    file.parent.mkdir(parents=True)
    file.write_text("early " + "x" * (1 << 20) + " late")
    note = f"<persisted-output>\nFull output saved to: {file}\n</persisted-output>"
    t.append(t.call("c", command="cat"), t.result("c", note))
    assert world.ingest().warnings == 1
    assert len(world.found("early")) == 1
    assert world.found("late") == []
    assert world.sql("SELECT reason FROM warnings") == [
        ("only the first 1 MiB of this output are searchable",)
    ]
    assert world.restored(file) == file.read_bytes()


def test_a_sidecar_that_comes_late_is_read_by_the_next_pass(world):
    """The call, the kind and the title of a subagent are known although its lines are old."""
    t = world.transcript()
    folder = t.path.with_suffix("") / "subagents"
    child = type(t)(folder / "agent-abc.jsonl", t.session)
    child.append(child.prompt("look around", isSidechain=True, agentId="abc"))
    world.ingest()
    meta = {"agentType": "Explore", "description": "Look", "toolUseId": "toolu_9"}
    (folder / "agent-abc.meta.json").write_text(json.dumps(meta))
    world.ingest()
    assert world.sql("SELECT agent_type, title, call_id FROM sessions WHERE kind = 'subagent'") == [
        ("Explore", "Look", "toolu_9")
    ]


def test_a_subagent_finds_a_parent_that_is_not_named_by_a_uuid(world):
    """The parent is the session of that name in the same folder, not an empty one."""
    t = world.transcript("my-session")
    t.append(t.prompt("hello"))
    child = type(t)(t.path.with_suffix("") / "subagents" / "agent-abc.jsonl", t.session)
    child.append(child.prompt("look around", isSidechain=True, agentId="abc"))
    world.ingest()
    assert world.sql(
        "SELECT p.native_id, p.records FROM sessions c JOIN sessions p ON p.id = c.parent_id"
    ) == [("my-session", 1)]


def test_a_pass_that_is_stopped_keeps_what_it_wrote_and_reads_no_more(world, monkeypatch):
    """The file in hand is committed; the next pass goes on with the others."""
    for number in range(3):
        t = world.transcript(f"{number:08d}-1111-4111-8111-111111111111")
        t.append(t.prompt(f"text {number}"))
    world.state.mkdir(mode=0o700)
    with closing(opened(world.state / "index.db")) as db:
        ingest = Ingest(Store(db))
        write = ingest._write

        def write_and_stop(step, summary):
            write(step, summary)
            ingest.stop.set()

        monkeypatch.setattr(ingest, "_write", write_and_stop)
        ingest.reconcile(world.places())
    assert len(world.found("text")) == 1
    world.ingest()
    assert sorted(world.found("text")) == ["text 0", "text 1", "text 2"]
    world.check()


@pytest.mark.parametrize("passes", [1, 2])
def test_time_that_is_known_to_be_a_persons_is_no_duration(world, passes):
    """A denied call did not run, and a question waits for its answer; others keep their time."""
    t = world.transcript()
    t.append(t.call("c1", command="rm"), t.call("c2", "AskUserQuestion", questions=[]))
    t.append(t.call("c3", command="ls"))
    if passes == 2:
        world.ingest()
    refused = "The user doesn't want to proceed with this tool use."
    t.append(
        t.result("c1", refused, is_error=True, toolUseResult={"durationMs": 5}),
        t.result("c2", "tea"),
        t.result("c3", "a"),
    )
    world.ingest()
    rows = world.sql("SELECT call_id, status, duration_ms FROM events ORDER BY call_id")
    assert rows == [("c1", "denied", None), ("c2", "ok", None), ("c3", "ok", 3000)]


@pytest.mark.parametrize("first", [True, False])
def test_a_load_leaves_no_pieces_of_full_text_to_merge(world, monkeypatch, first):
    """The next lines would pay for it. Later ones are added, and all words are found."""
    monkeypatch.setattr(sources, "is_first_walk_unfinished", lambda _: first)
    monkeypatch.setattr(passes, "BULK", 0)
    monkeypatch.setattr(passes, "_MERGED_AT_ONCE", 2)
    t = world.transcript()
    for n in range(6):  # each pass writes a piece
        t.append(t.prompt(f"word{n} " + " ".join(f"x{n}y{m}" for m in range(400))))
        world.ingest()
    with closing(open_writer(world.state / "index.db")) as db:
        before = db.total_changes()
        db.execute("INSERT INTO event_index (event_index, rank) VALUES ('merge', 500)")
        assert db.total_changes() - before < 2
    t.append(t.prompt("word6"))
    world.ingest()
    with closing(open_writer(world.state / "index.db")) as db:
        db.execute("INSERT INTO event_index (event_index, rank) VALUES ('integrity-check', 1)")
        query = "SELECT count(*) FROM event_index WHERE event_index MATCH ?"
        found = [db.execute(query, (f"word{n}",)).get for n in (0, 5, 6, 7)]
    assert found == [1, 1, 1, 0]


class Committed(Batch):
    """Notes what the index says of itself after each commit."""

    def __init__(self, store, said):
        super().__init__(store)
        self.store, self.said = store, said

    def commit(self):
        super().commit()
        self.said.append(sources.coverage(self.store.db))


def walked(world, on_progress=lambda _: None):
    """A walk over two sessions, the newer first, that commits each file; what is then said."""
    said: list[sources.Coverage | None] = []
    for letter, when in (("a", 1_700_000_000), ("b", 1_750_000_000)):
        t = world.transcript(f"{letter * 8}-1111-4111-8111-111111111111")
        t.append(t.prompt("some words"))
        os.utime(t.path, (when, when))
    world.state.mkdir(mode=0o700)
    with closing(opened(world.state / "index.db")) as db:
        ingest = Ingest(Store(db))
        ingest._batch = Committed(ingest._store, said)
        ingest.on_progress = on_progress
        summary = ingest.reconcile(world.places())
        return summary, said, sources.coverage(db)


@pytest.fixture
def each_file(monkeypatch):
    """Walks are long, however little there is to read, and commit after each step."""
    monkeypatch.setattr(passes, "BULK", 0)
    monkeypatch.setattr(passes, "FIRST_COMMITS", (0,) * 99)
    monkeypatch.setattr(passes.Ingest, "_read_ahead", lambda *_: None)


def test_each_commit_of_a_long_walk_says_what_the_index_has(world, each_file):
    """Since when, and how much; with the walk it ends. The newest file is read first."""
    summary, said, left = walked(world)
    assert next(one.since for one in said if one.done) == 1_750_000_000_000
    assert said[-1].since == 1_700_000_000_000
    assert {one.total for one in said} == {summary.total_bytes}
    assert left is None


def test_what_is_written_during_a_long_walk_is_not_read_last(world, each_file, monkeypatch):
    """A load of gigabytes takes minutes, and agents are at work meanwhile."""
    monkeypatch.setattr(passes, "LOOK_AGAIN", 0)
    monkeypatch.setattr(passes, "_LOOK_SHARE", 1e9)
    late = world.transcript("cccccccc-1111-4111-8111-111111111111")

    def write(summary):
        if not late.path.exists():
            late.append(late.prompt("late words"))

    summary, _, _ = walked(world, write)
    names = world.sql("SELECT substr(native_id, 1, 1) FROM sessions ORDER BY id")
    assert names == [("b",), ("c",), ("a",)]
    assert summary.records == 3
    world.check()


def test_a_walk_that_was_stopped_leaves_word_of_what_is_missing(world, each_file, monkeypatch):
    """The next one reads the rest, and nothing twice."""
    monkeypatch.setattr(passes.Ingest, "_commit", lambda self, *_: self.stop.set())
    _, _, left = walked(world)
    assert left is not None
    assert world.sql("SELECT substr(native_id, 1, 1) FROM sessions") == [("b",)]
    monkeypatch.undo()
    assert world.ingest().records == 1
    with closing(open_writer(world.state / "index.db")) as db:
        assert sources.coverage(db) is None
