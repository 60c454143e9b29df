"""`sess stats` with words that it cannot use, and sessions that are hard to name."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def small(world):
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("done"))
    world.ingest()
    return world


@pytest.mark.parametrize("day", ["0001-01-01", "0001-01", "9999-12-31", "not a day"])
@pytest.mark.parametrize("by", ["day", "week", "month", "hour"])
def test_explaining_a_day_that_never_was_finds_nothing(small, by, day):
    done = small.run("sess", "stats", "--no-sync", "--by", by, "--explain", day)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f'sess: no {by} matches "{day}"\nhint: ')


def test_an_unknown_session_is_called_so(small):
    done = small.run("sess", "stats", "--no-sync", "--session", "nosuch")
    assert done.stderr.startswith('sess: no such session: "nosuch"')
    done = small.run("sess", "stats", "--no-sync", "nosuch")
    assert done.stderr.startswith('sess: no such view or session: "nosuch"')


@pytest.mark.parametrize("option", ["--html", "--png"])
def test_charts_go_into_files_only(small, option, tmp_path):
    done = small.run("sess", "stats", "--no-sync", option, "-", check=2, cwd=tmp_path)
    assert done.stderr.splitlines()[0] == "sess: cannot write charts to stdout"
    assert not (tmp_path / "-").exists()


def test_sessions_of_the_same_name_are_groups_of_their_own(world):
    for project, tokens in (("-code-one", 10), ("-code-two", 200)):
        t = world.transcript("chat", project)
        t.count = tokens  # records of its own, no copies
        t.append(t.prompt("go"), t.answer("done", output_tokens=tokens, message_id=project))
    world.ingest()
    done = world.run("sess", "stats", "--no-sync", "--by", "session", "--json", check=0)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["group"]: (row["sessions"], row["output_tokens"]) for row in rows} == {
        f"{world.projects}/-code-one/chat": (1, 10),
        f"{world.projects}/-code-two/chat": (1, 200),
    }
    for row in rows:  # the name is one that can be asked for
        done = world.run("sess", "stats", "--no-sync", row["group"], "--json", check=0)
        assert json.loads(done.stdout.splitlines()[0])["output_tokens"] == row["output_tokens"]


def test_what_is_explained_is_what_was_counted(world):
    """A prompt is laid to the model that answered last, also if that was days before."""
    t = world.transcript()
    for number, (day, model) in enumerate((("01", "claude-sonnet-4-5"), ("05", "claude-opus-4-5"))):
        answer = t.answer("done", message_id=f"msg_{number}")
        answer["message"]["model"] = model
        t.append(
            {**t.prompt(f"go {number}"), "timestamp": f"2026-02-{day}T10:00:00.000Z"},
            {**answer, "timestamp": f"2026-02-{day}T10:20:00.000Z"},
        )
    world.ingest()
    asked = ("--by", "day", "--model", "claude-sonnet", "--json", "--utc", "--no-sync")
    done = world.run("sess", "stats", *asked, check=0)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["group"], row["prompts"]) for row in rows] == [
        ("2026-02-01", 1),
        ("2026-02-05", 1),
    ]
    done = world.run("sess", "stats", *asked, "--explain", "2026-02-05", check=0)
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == ["prompt"]
