"""`sess show` as a program."""

from __future__ import annotations

import re
from contextlib import closing

import pytest

from sess_schema.connection import open_writer

MAIN = "11111111-1111-4111-8111-111111111111"
FORK = "33333333-3333-4333-8333-333333333333"


def masked(text):
    """Keys are hashes; what matters is that they are there."""
    return re.sub(r"#[0-9a-f]{8}\b", "#NNNNNNNN", text)


def test_a_transcript_is_pleasant_to_read(story, sess):
    """The whole text of a session at 80 columns, folded and without its system events."""
    text, code = sess.on_terminal("show", "--no-sync", "1111", HOME="/elsewhere")
    assert code == 0
    assert (
        masked(text).replace(str(story.projects), "P")
        == f"""\
please fix the flaky retry test
session   {MAIN} (claude)
project   /code/demo on main
model     claude-opus-4-5 · version 2.1.0
when      2026-02-01 10:00 (9.0s)
counts    1 prompt, 3 tool calls (1 failed), 8 events
source    P/-code-demo/{MAIN}.jsonl
subagents agent-abc12345

───────────────────────────────────────────────── 2026-02-01 10:00:01  #NNNNNNNN
❯ please fix the flaky retry test

✻ one
  two
  three
  … 3 more lines

  I will run **the tests** first.

● Bash  go test ./... # run them                           error 1.0s  #NNNNNNNN
    FAIL: retry was called 2 times
● Task  [Explore] find callers                                ok 1.0s  #NNNNNNNN
    caller 0
    caller 1
    caller 2
    caller 3
    caller 4
    … 15 more lines
    → agent-abc12345, 1 event

──── Conversation compacted ────────────────────────────────────────────────────
● Edit  /code/demo/a.go (edit)                                pending  #NNNNNNNN
    - two
    + three

1 system event hidden; --full shows it
"""
    )


def test_a_long_tool_name_gives_way(world, sess):
    """At 60 columns the line of a call fits, whatever its tool is called."""
    t = world.transcript()
    t.append(t.prompt("go"), t.call("c1", "mcp__plugin_" + "x" * 80, query="retry " * 40))
    world.ingest()
    for verb, word in (("show", "1111"), ("search", "retry")):
        text, code = sess.on_terminal(verb, "--no-sync", word, width=60, HOME="/elsewhere")
        assert code == 0
        lines = [line for line in text.splitlines() if not line.startswith("source ")]
        assert max(map(len, lines)) <= 60


def test_messages_of_teammates_are_shown(world, sess):
    """Answers refer to them, though no person typed them."""
    t = world.transcript()
    message = '<teammate-message teammate_id="ann">the tea is cold</teammate-message>'
    t.append(t.prompt("go"), t.prompt(message), t.answer("I warm it."))
    world.ingest()
    assert "    ann: the tea is cold\n" in sess("show", "1111").stdout
    exported = sess("export", "md", "--no-sync", "1111", "-o", "-", sync=True).stdout
    assert "> ann: the tea is cold\n" in exported


def test_full_lifts_every_limit(story, sess):
    """--full shows system events, whole outputs and whole inputs."""
    text = sess("show", "1111", "--full").stdout
    assert "caller 19" in text
    assert "a notice" in text
    assert "six" in text
    assert "hidden" not in text
    assert "more lines" not in text


def test_json_has_one_object_per_event(story, sess):
    """Inputs keep their structure; the fields are the documented ones."""
    events = sess.json("show", "1111")
    assert [event["type"] for event in events] == [
        "user", "thinking", "assistant", "tool_use", "tool_use", "system", "system", "tool_use",
    ]  # fmt: skip
    bash, task = events[3], events[4]
    assert {name: bash[name] for name in bash if name != "event"} == {
        "ts": "2026-02-01T10:00:04.000Z",
        "ts_from": None,
        "type": "tool_use",
        "label": None,
        "tool": "Bash",
        "kind": "shell",
        "summary": "go test ./... # run them",
        "input": {"command": "go test ./...", "description": "run them"},
        "output": "FAIL: retry was called 2 times",
        "status": "error",
        "unjoined": None,
        "duration_ms": 1000,
        "text": "",
        "files": [],
        "images": 0,
        "subagent": None,
        "copied_from": None,
    }
    assert task["subagent"] == "agent-abc12345"
    assert (events[7]["status"], events[7]["files"]) == (
        "pending",
        [{"path": "/code/demo/a.go", "action": "edit"}],
    )


def test_it_starts_at_an_event(story, sess):
    """ID#EVENT shows a few events before the one that search named, and marks it."""
    (hit,) = sess.json("search", "callers")
    lines = sess("show", f"1111#{hit['event']}").stdout.splitlines()
    marker = lines.index(f"▶ event #{hit['event'][:8]}")
    assert lines[marker + 1].startswith("● Task  [Explore] find callers")
    assert "… 1 event before: `sess show 11111111`" in lines
    assert sess.json("show", f"1111#{hit['event']}")[0]["tool"] == "Task"


def test_an_event_of_another_session_is_not_shown(story, sess):
    """The key must belong to the session."""
    (other,) = sess.json("search", "--session", "2222", "red")
    done = sess("show", f"1111#{other['event']}", code=1)
    assert done.stderr.startswith(f"sess: session {MAIN} has no event #{other['event']}\n")


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ("../../etc/passwd", 1, 'sess: no such session: "../../etc/passwd"\n'),
        ("ffff", 1, 'sess: no such session: "ffff"\n'),
        ("111", 2, 'sess: session ID too short: "111"\n'),
        ("#5", 2, 'sess: session ID too short: "#5"\n'),
    ],
)
def test_a_bad_id_is_a_clear_line(story, sess, given, code, message):
    """Ids are looked up, never opened; the hint says how to go on."""
    done = sess("show", given, code=code)
    assert done.stderr.startswith(message)
    assert "\nhint: " in done.stderr


def test_last_is_the_newest(story, sess):
    """`last` needs no id."""
    assert "2026-02-02" in sess("show", "last").stdout


def test_a_fork_says_where_its_beginning_comes_from(story, sess):
    """Copied events are marked once, and so is the place where they end."""
    copied = story.transcript(MAIN).path.read_bytes().splitlines(keepends=True)[:3]
    fork = story.transcript(FORK)
    fork.append(*copied, fork.prompt("another way", timestamp="2026-02-03T10:00:00.000Z"))
    story.ingest()
    lines = sess("show", FORK).stdout.splitlines()
    assert [line.strip("─ ") for line in lines if line.startswith("──── ")] == [
        "copied from 11111111",
        "the fork starts here",
    ]
    assert [event["copied_from"] for event in sess.json("show", FORK)] == [MAIN] * 3 + [None]


def test_a_gone_source_is_named_with_its_day(story, sess):
    """The header says that the file is gone and what brings it back."""
    story.transcript(MAIN).path.unlink()
    story.ingest()
    text = sess("show", "1111").stdout
    assert re.search(r"\(gone since \d{4}-\d\d-\d\d; `sess restore` writes it back\)", text)


def test_hostile_text_is_harmless_on_a_terminal_and_whole_in_a_pipe(story, sess):
    """Only where it could do harm it is changed."""
    text, _ = sess.on_terminal("show", "--no-sync", "2222")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert "\x1b[31mred\x1b[0m" in sess("show", "2222").stdout


def test_the_ids_of_an_ambiguous_one_can_be_used(world, sess):
    """However long they are; each of them means one session."""
    for folder in ("-code-" + "a" * 80, "-code-" + "b" * 80):
        t = world.transcript("journal", folder)
        t.append(t.prompt("hello there"))
    world.ingest()
    lines = sess("show", "journal", code=2).stderr.splitlines()
    assert lines[0] == 'sess: "journal" matches 2 sessions:'
    for line in lines[1:3]:
        assert sess("show", line.split()[0]).stdout.startswith("hello there\n")


def test_the_pager_gets_the_text(story, sess, tmp_path):
    """On a terminal the transcript goes through $PAGER, with colours."""
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n")
    pager.chmod(0o755)
    text, code = sess.on_terminal("show", "--no-sync", "1111", colour=True, PAGER=str(pager))
    assert (text, code) == ("", 0)
    assert "\x1b[1mplease fix the flaky retry test\x1b[0m\n" in (tmp_path / "paged").read_text()


def test_a_pager_that_is_left_early_is_no_error(story, sess, tmp_path):
    """Leaving the pager before the end ends the program quietly."""
    t = story.transcript(MAIN)
    t.append(*(t.answer("long " * 200) for _ in range(300)))
    story.ingest()
    text, code = sess.on_terminal("show", "--no-sync", "1111", PAGER="head -1")
    assert (text, code) == ("please fix the flaky retry test\n", 0)


def test_a_less_with_options_shows_colours(story, sess, tmp_path):
    """`less` shows colours only when told; LESS tells it, unless the user has set it."""
    pager = tmp_path / "less"
    pager.write_text('#!/bin/sh\ncat > /dev/null; echo "<$LESS>"\n')
    pager.chmod(0o755)
    text, _ = sess.on_terminal("show", "--no-sync", "1111", PAGER=f"{pager} -N")
    assert text == "<FRX>\n"
    text, _ = sess.on_terminal("show", "--no-sync", "1111", PAGER=f"{pager} -N", LESS="-i")
    assert text == "<-i>\n"


def test_the_header_says_where_a_guessed_project_comes_from(world, sess):
    """And that the parent of a subagent is missing."""
    lost = "99999999-9999-4999-8999-999999999999"
    t = world.transcript("agent-abc12345", f"-code-demo/{lost}/subagents")
    record = t.prompt("look", isSidechain=True, sessionId=lost)
    del record["cwd"]
    t.append(record)
    world.ingest()
    shown = sess("show", "agent-abc12345").stdout
    assert "\nproject   -code-demo on main (the name of its folder)\n" in shown
    assert "\nparent    99999999 (its transcript is missing)\n" in shown


@pytest.mark.slow
def test_records_that_cannot_be_read_have_a_place(world, sess):
    """A damaged one and one that is too long, in the transcript, in Markdown and in a page."""
    t = world.transcript(MAIN)
    t.append(
        t.prompt("before"),
        b'{"half a rec\n',
        b'{"x":"' + b"y" * (33 << 20) + b'"}\n',
        t.answer("after"),
    )
    world.ingest()
    shown = masked(sess("show", "1111").stdout)
    assert shown.endswith("""\
❯ before

· Damaged record  #NNNNNNNN
    {"half a rec
· Record too long to show  #NNNNNNNN
    line of 33 MiB is archived but not searchable

  after

""")
    document = world.run("sess", "export", "md", "1111", "-o", "-", check=0).stdout
    assert '*Damaged record*\n\n```text\n{"half a rec\n```\n' in document
    assert (
        "*Record too long to show*\n\n```text\nline of 33 MiB is archived but not searchable\n```\n"
    ) in document
    page = world.run("sess", "export", "html", "1111", "--static", "-o", "-", check=0).stdout
    assert "Damaged record" in page
    assert "Record too long to show" in page
    assert "line of 33 MiB is archived but not searchable" in page


@pytest.mark.slow
def test_a_damaged_archive_is_one_clear_line_in_every_command(world, tmp_path):
    """Those that read it say that something is missing; none shows an internal error."""
    t = world.transcript(MAIN)
    t.append(t.prompt("hello"), t.call("c1", command="make tea"), t.result("c1", "done"))
    world.ingest()
    with closing(open_writer(world.state / "index.db")) as db:
        db.execute("UPDATE chunks SET data = ?", (b"garbage",))
    incomplete = "sess: incomplete: "
    for said, *command in (
        ("", "show", "1111", "--full"),  # the texts are in the index
        ("", "records", "1111"),
        (incomplete, "show", "1111", "--json"),
        (incomplete, "history", "1111", "--json"),
        (incomplete, "handoff", "1111"),
        (incomplete, "export", "html", "1111", "-o", tmp_path / "html"),
        (incomplete, "export", "md", "1111", "-o", tmp_path / "md"),
        (incomplete, "export", "cast", "1111", "-o", tmp_path / "cast"),
        (incomplete, "export", "sqlite", "1111", "-o", tmp_path / "sqlite"),
        (incomplete, "export", "site", "-o", tmp_path / "site"),
        (incomplete, "export", "json", "1111", "-o", tmp_path / "json"),
        ("sess: the archive from byte 0 on is damaged", "restore", "1111", "-o", tmp_path / "raw"),
    ):
        done = world.run("sess", *command, "--no-sync")
        errors = [line for line in done.stderr.splitlines() if line.startswith("sess: ")]
        assert [line.startswith(said) for line in errors] == ([True] if said else []), command
        assert done.returncode == (0 if not said else 5 if said == incomplete else 4)
