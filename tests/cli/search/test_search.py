"""`sess search` as a program."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest
from tests.forked import BIN
from tests.waiting import LIMIT

MAIN = "11111111-1111-4111-8111-111111111111"


def test_json_has_the_documented_fields(story, sess):
    """One object per hit with full ids, UTC times and the event's key."""
    (hit,) = sess.json("search", "flaky")
    event = hit.pop("event")
    score = hit.pop("score")
    assert hit == {
        "version": 2,
        "session": MAIN,
        "agent": "claude",
        "project": "/code/demo",
        "title": "please fix the flaky retry test",
        "parent": None,
        "ts": "2026-02-01T10:00:01.000Z",
        "ts_from": None,
        "type": "user",
        "tool": None,
        "status": None,
        "label": None,
        "snippet": "please fix the flaky retry test",
        "matches": [[15, 20]],
        "field": "text",
        "offsets": [[15, 20]],
        "path": None,
        "line": None,
        "superseded": False,
        "tier": "exact",
    }
    assert re.fullmatch("[0-9a-f]{12}", event)
    assert score > 0


def test_a_failed_call_is_found_by_its_mark(story, sess):
    """`is_error` finds failures as grepping the transcripts would; --error and --type do too."""
    for arguments in (["is_error"], ["retry", "--error"], ["retry", "--type", "error"]):
        hits = sess.json("search", *arguments)
        assert [(hit["tool"], hit["status"]) for hit in hits] == [("Bash", "error")]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["flaky"], 0),
        (["nowhere"], 1),
        ([""], 2),
        ([], 2),
        (["flaky", "--since", "someday"], 2),
        (["flaky", "--type", "nonsense"], 2),
        (["flaky", "--limit", "-1"], 2),
        (["flaky", "--session", "ffff"], 1),
        (["flaky", "--until", "2020"], 1),
        (["flaky", "--agent", "codex"], 1),
        (["flaky", "--project", "evil"], 1),
        (["go", "test", "./..."], 0),
        (["flaky", "-retry"], 1),
        (["flaky", "--", "-retry"], 1),
        (["--", "--no-such"], 1),
        (["git commit --no-verify"], 1),
        (['"unbalanced'], 1),
        (["flaky", "AND"], 0),
    ],
)
def test_exit_codes_are_those_of_grep(story, sess, arguments, code):
    """0 found, 1 nothing, 2 usage; and nothing but data on stdout."""
    done = sess("search", *arguments, code=code)
    assert bool(done.stdout) is (code == 0)
    assert "Traceback" not in done.stderr


def test_a_misspelt_option_is_not_a_word(story, sess):
    """A slip is answered with the option that was meant."""
    done = sess("search", "flaky", "--projct", "x", code=2)
    assert done.stderr == (
        "sess: no such option: --projct\n"
        "hint: did you mean --project? `sess search -- --projct` searches for it as a word\n"
    )


def test_text_in_a_pipe_is_whole_and_plain(story, sess):
    """Two lines per hit: the session, then what matched; no colour, no cuts."""
    lines = sess("search", "flaky").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("11111111  please fix the flaky retry test · /code/demo · ")
    event = sess.json("search", "flaky")[0]["event"]
    assert lines[1] == f"  user  #{event[:8]}  please fix the flaky retry test"


def test_a_terminal_gets_lines_that_fit(story, sess):
    """At 80 columns and at 40 no line is longer than that."""
    for width in (80, 40):
        text, code = sess.on_terminal("search", "--no-sync", "retry", width=width)
        assert code == 0
        assert max(map(len, text.splitlines())) <= width


def test_hits_are_highlighted_on_a_terminal(story, sess):
    """The words that matched stand out."""
    text, _ = sess.on_terminal("search", "--no-sync", "flaky", colour=True)
    assert "\x1b[1;33mflaky\x1b[0m" in text


def test_hostile_text_does_not_reach_a_terminal(story, sess):
    """Titles, snippets and projects lose their control characters."""
    text, code = sess.on_terminal("search", "--no-sync", "red")
    assert code == 0
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "<U+202E>evil" in text


def test_a_hostile_id_does_not_reach_a_terminal(world, sess):
    """The name of a file is as foreign as its text."""
    t = world.transcript("\x1b[31mid")
    t.append(t.prompt("words"))
    world.ingest()
    text, code = sess.on_terminal("search", "--no-sync", "words")
    assert code == 0
    assert "\x1b" not in text


def test_json_on_a_terminal_is_the_same_and_inert(world, sess):
    """C1 controls and direction marks are escaped there, and stay as they are in a pipe."""
    t = world.transcript()
    t.append(t.prompt("words \x9b31m \u202e \x7f 中文"))
    world.ingest()
    text, _ = sess.on_terminal("search", "--no-sync", "--json", "words", width=4000)
    assert not re.search("[\x7f-\x9f\u202e]", text)
    assert "中文" in text
    (hit,) = sess.json("search", "words")
    assert json.loads(text) == hit
    assert "\x9b31m" in sess("search", "--json", "words").stdout


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize(
    "time",
    ["--since=999999999y", "--since=0001-01-01", "--until=9999-12-31", "--until=9999-12",
     "--until=9999"],
)  # fmt: skip
def test_the_ends_of_time_are_times(story, sess, time, zone):
    """How scripts write `from the beginning` and `without end`."""
    story.env["TZ"] = zone
    assert sess("search", "flaky", time).stdout
    assert sess("list", time).stdout


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_an_empty_time_is_a_usage_error(story, sess, option):
    """An unset variable in a script must not mean the beginning of time."""
    assert sess("search", "retry", option, "", code=2).stderr.startswith('sess: invalid time: ""\n')


def test_h_is_help(story, sess):
    """As with every other verb; in a pasted command it is a word."""
    assert sess("search", "-h", sync=True).stdout.startswith("Usage: sess search")
    assert sess("search", "retry", "-h").stdout.startswith("Usage: sess search")
    done = sess("search", "docker", "-h", code=1)
    assert "\nnote: -h is searched for" in done.stderr


def test_scores_tell_common_words_apart(world, sess):
    """A word in most events has tiny scores; they are still larger for better matches."""
    t = world.transcript()
    t.append(*(t.prompt("word " * n + "x " * 50) for n in range(1, 9)))
    world.ingest()
    scores = [hit["score"] for hit in sess.json("search", "word")]
    assert len(set(scores)) == 8
    assert scores == sorted(scores, reverse=True)


def test_a_broken_pipe_is_quiet(world, sess):
    """`| head -1` ends the search without a word."""
    t = world.transcript()
    t.append(*(t.prompt(f"needle {'x' * 500} {number}") for number in range(300)))
    world.ingest()
    done = world.run("sess", "search", "--no-sync", "needle", "--limit", "0", "--json")
    assert len(done.stdout.splitlines()) == 300
    script = "sess search --no-sync needle --limit 0 --json | head -1; exit ${PIPESTATUS[0]}"
    path = f"{done.args[0].parent}:/usr/bin:/bin"
    piped = subprocess.run(
        ["bash", "-c", script],
        env={**world.env, "PATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (piped.returncode, piped.stderr, len(piped.stdout.splitlines())) == (0, "", 1)


def test_nobody_to_tell_changes_no_exit_code(world):
    """`2>&1 | head -1`: the message is lost, the outcome is not."""
    outer, inner = os.pipe()
    os.close(outer)
    env = {**world.env, "PYTHONUNBUFFERED": ""}
    code = subprocess.call([BIN / "sess", "list", "--limt"], env=env, stderr=inner)
    os.close(inner)
    assert code == 2


def test_a_search_in_one_session_stays_there(story, sess):
    """--session takes what `show` takes."""
    assert len(sess.json("search", "retry", "--session", "1111")) == 2
    sess("search", "retry", "--session", "2222", code=1)


def test_a_database_that_could_not_be_read_is_named(world):
    """Its conversations may be missing: said on stderr, unless only other agents are asked for."""
    t = world.transcript()
    t.append(t.prompt("hello"))
    database = world.root / ".config/Cursor/User/globalStorage/state.vscdb"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"no database " * 1000)
    note = f'note: cursor: "{database}" could not be read: '
    for _ in range(2):  # also if nothing changed since the last pass
        done = world.run("sess", "search", "hello", "--json", check=0)
        assert done.stderr.startswith(note)
        assert done.stderr.count("\n") == 1
    assert note in world.run("sess", "search", "absent", check=1).stderr
    assert world.run("sess", "search", "hello", "--agent", "claude", check=0).stderr == ""
    database.unlink()
    assert world.run("sess", "search", "hello", check=0).stderr == ""


def test_a_spelling_that_lacks_one_letter_comes_before_a_frequent_one_that_lacks_two(world):
    """`commi` is rather `commit` than `com`, however often `com` was said."""
    t = world.transcript()
    t.append(t.prompt("com"), t.prompt("com again"), t.prompt("commit"))
    world.ingest()
    done = world.run("sess", "search", "commi", "--no-sync", check=1)
    assert done.stderr.splitlines()[1] == (
        'hint: 1 event matches "commit" instead of "commi": `sess search commit`'
    )
