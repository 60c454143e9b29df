"""`sess list` as a program."""

from __future__ import annotations

import re
import subprocess

import pytest
from tests.must import must

MAIN = "11111111-1111-4111-8111-111111111111"


def test_json_has_the_documented_fields(story, sess):
    """One object per session, newest activity first."""
    newest, oldest = sess.json("list")
    assert newest["session"].startswith("2222")
    assert oldest == {
        "session": MAIN,
        "agent": "claude",
        "project": "/code/demo",
        "project_from": None,
        "title": "please fix the flaky retry test",
        "labels": [],
        "pinned": False,
        "started": "2026-02-01T10:00:01.000Z",
        "ended": "2026-02-01T10:00:10.000Z",
        "events": 8,
        "prompts": 1,
        "tool_calls": 3,
        "kind": "main",
        "parent": None,
        "git_branch": "main",
        "models": ["claude-opus-4-5"],
        "mode": None,
        "agent_version": "2.1.0",
        "agent_type": None,
        "time_from": None,
        "duration_ms": 9000,
        "active_ms": 9000,
        "agent_ms": 9000,
        "user_ms": 0,
        "tool_errors": 1,
        "tool_denied": 0,
        "requests": 5,
        "input_tokens": 15,
        "output_tokens": 50,
        "cache_write_tokens": 0,
        "cache_write_1h_tokens": 0,
        "cache_read_tokens": 0,
        "reasoning_tokens": 0,
        "cost_usd": 0.001325,
        "cost_nano_usd": 1_325_000,
        "unpriced_requests": 0,
        "source": str(story.transcript(MAIN).path),
        "source_gone": False,
    }


def test_all_has_subagents_with_their_parent(story, sess):
    """Subagents are hidden until asked for."""
    rows = {row["session"]: row for row in sess.json("list", "--all")}
    assert len(rows) == 3
    assert (rows["agent-abc12345"]["kind"], rows["agent-abc12345"]["parent"]) == ("subagent", MAIN)


def test_a_vanished_transcript_is_listed_as_gone(story, sess):
    """The session outlives its source."""
    story.transcript(MAIN).path.unlink()
    story.ingest()
    assert [row["source_gone"] for row in sess.json("list")] == [False, True]


def test_dot_is_the_current_directory(world, sess, tmp_path):
    """--project . finds the sessions of this directory and below, also through a link."""
    here = tmp_path / "code"
    (here / "deep").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(here)
    for number, cwd in enumerate((here, here / "deep", link, "/code/demo"), 1):
        t = world.transcript(f"{number}" * 8 + "-0000-4000-8000-000000000000")
        t.append(t.prompt("hello", cwd=str(cwd)))
    world.ingest()
    found = world.run("sess", "list", "--no-sync", "--project", ".", "--json", cwd=here, check=0)
    assert len(found.stdout.splitlines()) == 2
    found = subprocess.run(
        ["bash", "-c", f"cd {link} && {found.args[0]} list --no-sync --project . --json"],
        env=world.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(found.stdout.splitlines()) == 3
    assert len(sess.json("list", "--project", "DEEP")) == 1


def test_a_relative_project_follows_the_shell_through_links(world, tmp_path):
    """`..` and `./x` lead where the shell says, and a PWD of another directory means nothing."""
    here = tmp_path / "code"
    (here / "deep").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(here)
    for number, cwd in enumerate((link, link / "deep", here.parent / "other"), 1):
        t = world.transcript(f"{number}" * 8 + "-0000-4000-8000-000000000000")
        t.append(t.prompt("hello", cwd=str(cwd)))
    world.ingest()

    def listed(project, cwd, pwd):
        world.env["PWD"] = str(pwd)
        done = world.run("sess", "list", "--no-sync", "--project", project, "--json", cwd=cwd)
        return len(done.stdout.splitlines())

    assert listed("..", link / "deep", link / "deep") == 2
    assert listed("./deep", link, link) == 1
    assert listed(".", tmp_path / "code", tmp_path) == 0


def test_a_part_of_a_project_is_found_in_any_alphabet(world, sess):
    """Letters that SQLite cannot lower are compared as they are."""
    t = world.transcript()
    t.append(t.prompt("hello", cwd="/code/Ärger"))
    world.ingest()
    assert len(sess.json("list", "--project", "Ärg")) == 1
    assert len(sess.json("list", "--project", "ÄRGER")) == 1


def test_the_limit_has_no_limit(story, sess):
    """More than any computer counts to is simply all."""
    assert len(sess.json("list", "--limit", "99999999999999999999")) == 2


def test_an_id_with_a_path_does_not_push_the_others_aside(world, sess):
    """The same id in two folders is told apart by the folder; other lines still fit."""
    for folder in ("-a", "-b"):
        t = world.transcript("journal", folder)
        t.append(t.prompt("hello", cwd=f"/code/{folder}"))
    other = world.transcript()
    other.append(other.prompt("a title to be seen"))
    world.ingest()
    text, _ = sess.on_terminal("list", "--no-sync", width=65)
    (line,) = (line for line in text.splitlines() if line.startswith("11111111"))
    assert len(line) <= 65
    assert "a title to be seen" in line


def test_a_long_id_takes_room_from_its_own_title(world, sess):
    """Two ids that differ at the end are long; the other lines keep their columns."""
    for number in (1, 2):
        t = world.transcript(f"33333333-3333-4333-8333-33333333333{number}")
        t.append(t.prompt("please look after the kettle for a while"))
    other = world.transcript()
    other.append(other.prompt("please look after the kettle for a while"))
    world.ingest()
    text, _ = sess.on_terminal("list", "--no-sync", width=100)
    titles = [must(re.search("plea.*?(…|while)", line))[0] for line in text.splitlines()[1:]]
    assert sorted(titles) == [
        "please look after the kettle for a while",
        *["please look after the k…"] * 2,
    ]
    assert max(map(len, text.splitlines())) <= 100


def test_a_missing_project_is_a_dash(world, sess):
    """Not a path whose end is shown."""
    t = world.transcript(folder="")
    record = t.prompt("hello")
    del record["cwd"]
    t.append(record)
    world.ingest()
    text, _ = sess.on_terminal("list", "--no-sync", width=60)
    assert text.split()[-3:] == ["-", "hello", "1"]


def test_nothing_to_list_is_exit_code_1(story, sess):
    """The message says what would list more."""
    done = sess("list", "nowhere", code=1)
    assert done.stderr == (
        "sess: no session matches\nhint: `sess search nowhere` looks inside sessions;"
        " `sess list --all --limit 0` lists every session\n"
    )


@pytest.mark.parametrize("width", [80, 60, 45])
def test_ids_that_differ_at_their_ends_fit_a_terminal(world, sess, width):
    """Columns at the end go before titles do, and an id is never cut."""
    ids = [f"33333333-3333-4333-8333-33333333333{number}" for number in range(5)]
    for session in ids:
        t = world.transcript(session)
        t.append(t.prompt("please look after the kettle for a while"))
    world.ingest()
    text, _ = sess.on_terminal("list", "--no-sync", width=width)
    assert max(map(len, text.splitlines())) <= width
    for line in text.splitlines()[1:]:
        assert line.split()[0] in ids
        assert "plea" in line


def test_a_title_is_one_line_in_a_pipe(world, sess):
    """So that every line is a session."""
    t = world.transcript()
    t.append(t.prompt("first\nsecond\r\u2028third\x85fourth"))
    world.ingest()
    (line,) = sess("list").stdout.splitlines()
    assert "first second third fourth" in line


def test_columns_fit_a_terminal(story, sess):
    """At 80 and at 50 columns every line fits, and control characters are shown."""
    for width in (80, 50):
        text, code = sess.on_terminal("list", "--no-sync", "--all", width=width)
        assert code == 0
        assert max(map(len, text.splitlines())) <= width
        assert "\x1b" not in text


def test_sess_alone_is_the_list(story, sess):
    """Without a verb the list comes, and on a terminal a hint how to go on."""
    assert sess.world.run("sess", check=0).stdout == sess("list", sync=True).stdout
    text, code = sess.on_terminal(TERM="dumb")
    assert code == 0
    assert text.splitlines()[-1].startswith("hint: `sess search WORDS`")
    assert "\x1b" not in text


def test_sess_alone_on_a_terminal_is_the_finder(story, sess):
    """It takes the whole screen, and control-q gives it back."""
    text, code = sess.on_terminal(keys=b"\x11", colour=True)
    assert code == 0
    assert "\x1b[?1049h" in text
    assert "\x1b[?1049l" in text


@pytest.fixture
def months(world):
    """Three sessions: costly and old, cheap and new, and one on another branch and model."""
    for name, day, model, tokens, branch in (
        ("aaaa", "2026-01-05", "claude-opus-4-5", 9000, "main"),
        ("bbbb", "2026-02-05", "claude-opus-4-5", 90, "main"),
        ("cccc", "2026-03-05", "claude-haiku-4-5-20251001", 10, "feat/list"),
    ):
        t = world.transcript(f"{name}0000-0000-4000-8000-000000000000")
        more = {"timestamp": f"{day}T10:00:00.000Z", "gitBranch": branch}
        answer = t.assistant([{"type": "text", "text": "ok"}], output_tokens=tokens, **more)
        answer["message"]["model"] = model
        t.append(t.prompt(f"work on {name} please", **more), answer)
    agent = world.transcript(
        "agent-abc12345", "-code-demo/aaaa0000-0000-4000-8000-000000000000/subagents"
    )
    agent.append(agent.prompt("look", isSidechain=True))
    world.ingest()
    return world


def ids(sess, *arguments):
    return [row["session"][:4] for row in sess.json("list", *arguments)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["cccc", "bbbb", "aaaa"]),
        (["-r"], ["aaaa", "bbbb", "cccc"]),
        (["--sort", "cost"], ["aaaa", "bbbb", "cccc"]),
        (["--sort", "cost", "-r", "-n", "2"], ["cccc", "bbbb"]),
        (["--sort", "tokens", "-n1"], ["aaaa"]),
        (["--sort", "title"], ["aaaa", "bbbb", "cccc"]),
        (["--model", "HAIKU"], ["cccc"]),
        (["--branch", "feat/*"], ["cccc"]),
        (["--branch", "main", "--model", "opus"], ["bbbb", "aaaa"]),
        (["--older-than", "2026-02-01"], ["aaaa"]),
        (["WORK", "bbbb"], ["bbbb"]),
        (["demo"], ["cccc", "bbbb", "aaaa"]),
        (["cccc0000"], ["cccc"]),
    ],
)
def test_sessions_are_chosen_and_ordered(months, sess, arguments, expected):
    """Each filter and each order, as in the other commands."""
    assert ids(sess, *arguments) == expected


def test_an_unknown_order_names_the_orders(months, sess):
    """A usage error."""
    done = sess("list", "--sort", "size", code=2)
    assert done.stderr.startswith('sess: no such order: "size"\nhint: one of recent, started, ')


def test_words_that_no_title_has_lead_to_the_search(months, sess):
    """The list looks at titles; what sessions say is for `sess search`."""
    done = sess("list", "kettle", "pot", code=1)
    assert "hint: `sess search kettle pot` looks inside sessions; " in done.stderr


def test_the_list_has_a_header_cost_and_model(months, sess):
    """On a terminal the columns have names; the model is there if there is room."""
    text, _ = sess.on_terminal("list", "--no-sync", width=120)
    header, first, *_ = text.splitlines()
    assert header.split() == ["ID", "ACTIVE", "PROJECT", "TITLE", "MODEL", "COST", "EVENTS"]
    assert first.split()[-3:] == ["haiku-4-5", "~$0", "2"] or first.split()[-3] == "haiku-4-5"
    text, _ = sess.on_terminal("list", "--no-sync", width=80)
    assert "MODEL" not in text
    assert "ACTIVE" not in sess("list").stdout


def test_what_is_not_listed_is_counted(months, sess):
    """How many of how many, and how many more --all lists: together all that status counts."""
    text, _ = sess.on_terminal("list", "--no-sync", "-n", "2")
    assert text.splitlines()[-2:] == [
        "2 of 3 sessions; -n 0 lists all",
        "1 more with --all: subagents, logs, empty ones",
    ]
    done = sess("list", "-n", "2")
    assert done.stderr == "2 of 3 sessions; -n 0 lists all\n"
    assert sess("list").stderr == ""
    ((every,),) = months.sql("SELECT count(*) FROM sessions WHERE records > 0")
    assert every == 3 + 1
