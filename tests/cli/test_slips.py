"""What people mistype never looks like an answer: the nearest name, and an exit code."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import MAIN


@pytest.fixture
def home(story):
    """Two agents, so that one can be mistaken for the other."""
    folder = story.root / ".codex/sessions/2026/02/03"
    folder.mkdir(parents=True)
    meta = {"id": "33333333-3333-7333-8333-333333333333", "cwd": "/code/kite"}
    line = {"timestamp": "2026-02-03T10:00:00.000Z", "type": "session_meta", "payload": meta}
    said = {"type": "user_message", "message": "fly the kite", "images": []}
    prompt = {"timestamp": "2026-02-03T10:00:01.000Z", "type": "event_msg", "payload": said}
    name = "rollout-2026-02-03T10-00-00-33333333-3333-7333-8333-333333333333.jsonl"
    (folder / name).write_text("".join(f"{json.dumps(one)}\n" for one in (line, prompt)))
    story.run("sessiond", "sync")
    return story


# The words, the exit code, the problem, and the hint.
SLIPS = [
    ("stats --agent clod", 1, 'no agent matches "clod"', "did you mean claude?"),
    ("stats --model opsu", 1, 'no model matches "opsu"', "did you mean opus?"),
    ("stats --project dmeo", 1, 'no project matches "dmeo"', "did you mean demo?"),
    ("stats --project nope", 1, 'no project matches "nope"', "there are /code/"),
    ("stats --since 2026-03-01 --until 2026-01-01", 1, "--since is after --until", "swap"),
    ("stats --since 2040", 1, "no session matches", "sessions are from 2026-02-"),
    (f"stats {MAIN} --since 2040", 1, "has nothing in that time", "it is from 2026-02-01"),
    ("stats windows --agent clod", 1, 'no agent matches "clod"', "claude"),
    ("stats files b.gp", 1, 'no file matches "b.gp"', "hint: "),
    ("stats errors --explain tset", 1, 'no class of failures matches "tset"', "hint: "),
    ("stats --by agent --explain codx", 1, 'no agent matches "codx"', "did you mean codex?"),
    ("stats tols", 2, 'no such view or session: "tols"', "did you mean tools?"),
    ("stats --by modle", 2, 'no such group: "modle"', "did you mean model?"),
    ("list --agent clod", 1, 'no agent matches "clod"', "did you mean claude?"),
    ("list --branch mian", 1, 'no branch matches "mian"', "did you mean main?"),
    ("list --agent codex --project demo", 1, "no session matches", "1 session without --pro"),
    ("list --sort tiem", 2, 'no such order: "tiem"', "did you mean title?"),
    ("search --agent clod retry", 1, 'no agent matches "clod"', "did you mean claude?"),
    ("search agent:clod retry", 1, 'no agent matches "clod"', "did you mean claude?"),
    ("search tool:Tsak retry", 1, 'no tool matches "Tsak"', "did you mean Task?"),
    ("search a since:2026-03-01 until:2026-01-01", 1, "--since is after --until", "swap"),
    ("export html --agent clod", 1, 'no agent matches "clod"', "did you mean claude?"),
    ("forget --agent clod --yes", 1, 'no agent matches "clod"', "did you mean claude?"),
    ("show last#nope", 1, "has no event #nope", "shows all events"),
    (f"show {MAIN[:-1]}2", 1, "no such session", f"did you mean {MAIN}?"),
    ("ls", 2, "no such command: ls", "did you mean `sess list`?"),
    ("config", 2, "no such command: config", "did you mean `sessiond config`?"),
    ("status", 2, "no such command: status", "did you mean `sessiond status`?"),
    ("teapto", 1, "", 'hint: "teapto" is no command, so it was searched for'),
    ("list --color=nevr", 2, 'no such value for --color: "nevr"', "did you mean never?"),
]


def test_slips_in_a_pipe(home):
    """What is wrong and what was meant, and nothing that looks like an answer."""
    for typed, code, problem, hint in SLIPS:
        done = home.run("sess", *typed.split(), check=code)
        assert done.stdout == "", typed
        assert problem in done.stderr, typed
        assert hint in done.stderr, typed


def test_slips_on_a_terminal(home, sess):
    for typed, code, problem, hint in SLIPS:
        said, exit_code = sess.on_terminal(*typed.split(), width=200)
        assert exit_code == code, (typed, said)
        assert problem in said, typed
        assert hint in said, typed


def test_statistics_of_an_empty_time_are_zeros_for_programs(home, sess):
    """Who adds up days gets a zero, and the reason on stderr; a name that is none gets neither."""
    done = sess("stats", "--since", "2040", "--json", code=1)
    assert json.loads(done.stdout)["cost_nano_usd"] == 0
    assert "no session matches" in done.stderr
    assert sess("stats", "--agent", "clod", "--json", code=1).stdout == ""


def test_part_of_a_model_selects_it_everywhere(home, sess):
    """In statistics as in lists: whatever its letters' case."""
    (whole,) = sess.json("stats", "--model", "claude-opus-4-5")
    (part,) = sess.json("stats", "--model", "OPUS")
    assert part == whole
    assert part["requests"] > 0


def test_some_names_that_exist_do_not_hide_one_that_does_not(home, sess):
    done = sess("stats", "--agent", "claude", "--agent", "clod", code=1)
    assert "did you mean claude?" in done.stderr


def test_files_with_matches_obeys_the_limit(story, sess):
    """As every other form; without a limit all are printed."""
    assert len(sess("search", "-l", "title OR retry").stdout.splitlines()) == 2
    assert len(sess("search", "-l", "-n", "1", "title OR retry").stdout.splitlines()) == 1


@pytest.mark.parametrize("words", [("--color={}", "list"), ("list", "--color", "{}")])
def test_colour_is_chosen_before_or_after_a_command(story, sess, words):
    """`always` colours a pipe, whatever the environment says; `never` keeps a terminal plain."""
    story.env["NO_COLOR"] = "1"
    coloured = story.run("sess", *(word.format("always") for word in words), check=0)
    assert "\x1b[" in coloured.stdout
    del story.env["NO_COLOR"]
    plain, _ = sess.on_terminal(*(word.format("never") for word in words), colour=True)
    assert "\x1b[3" not in plain


def test_a_pasted_command_keeps_its_colour_option(story, sess):
    """It is searched for as it was typed."""
    assert "color=always" in sess("search", "--explain", "ls", "--color=always", "x").stdout
