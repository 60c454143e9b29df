"""`sess label`, `title` and `pin`: noted once, used everywhere, kept through everything."""

from __future__ import annotations

import json
from contextlib import closing

import apsw
import pytest
from tests.cli.conftest import MAIN, SECOND
from tests.waiting import wait_until


@pytest.fixture
def marked(story, sess):
    """One session with every kind of mark."""
    story.run("sess", "label", MAIN, "review", "client two", check=0)
    story.run("sess", "title", MAIN, "Retries,", "at last", check=0)
    story.run("sess", "pin", MAIN, check=0)
    return story


def test_marks_select_in_lists_searches_statistics_and_exports(marked, sess, tmp_path):
    """By option and inside a query, alone and excluded; wildcards work."""
    for options in (["--label", "rev*"], ["--label", "client two"], ["--pinned"]):
        (row,) = sess.json("list", *options)
        assert (row["session"], row["labels"], row["pinned"]) == (
            MAIN,
            ["client two", "review"],
            True,
        )
        assert row["title"] == "Retries, at last"
        (total,) = sess.json("stats", *options)
        assert 0 < total["tool_calls"] == sess.json("stats", MAIN)[0]["tool_calls"]
    for words in ("label:review retry", "is:pinned retry", "--label review retry"):
        assert {hit["session"] for hit in sess.json("search", *words.split())} == {MAIN}
    assert {hit["session"] for hit in sess.json("search", "-label:review", "is:ok OR title")} == {
        SECOND
    }
    assert {hit["title"] for hit in sess.json("search", 'title:"at last"')} == {"Retries, at last"}
    page = tmp_path / "pinned.md"
    marked.run("sess", "export", "md", "--pinned", "-o", page, check=0)
    assert "Retries, at last" in page.read_text()
    (shown,) = (line for line in sess("list").stdout.splitlines() if line.startswith("11111111"))
    assert "★ Retries, at last [client two] [review]" in shown


def test_marks_can_be_listed_and_taken_off(marked, sess):
    """The agent's title comes back; a label that is not there is named with the nearest."""
    sess("label", SECOND, "review")
    assert sess.json("label") == [
        {"label": "review", "sessions": 2},
        {"label": "client two", "sessions": 1},
    ]
    told = sess("label", MAIN, "--remove", "reviw", code=1).stderr
    assert "did you mean review?" in told
    assert sess("label", MAIN, "-d", "review").stdout == "client two\n"
    assert sess("title", MAIN, "--remove").stdout == "please fix the flaky retry test\n"
    sess("pin", MAIN, "--remove")
    sess("list", "--pinned", code=1)
    assert sess("list", "--label", "reviw", code=1).stderr.endswith("did you mean review?\n")


def test_a_label_is_one_name(story, sess):
    """What could not be typed as a filter is none."""
    for name in ("", "a,b", "st*r", 'quo"te', "x" * 300):
        done = sess("label", MAIN, name, code=2)
        assert done.stdout == ""
        assert "hint: " in done.stderr


def test_transcripts_are_never_written(marked):
    assert not any(b"Retries" in path.read_bytes() for path in marked.projects.rglob("*.jsonl"))


def test_a_running_daemon_notes_them(story, sess):
    """As the only writer."""
    daemon = story.start()
    try:
        wait_until(lambda: story.run("sessiond", "status").returncode == 0)
        story.run("sess", "label", MAIN, "review", check=0)
        assert story.sql("SELECT kind, value FROM own_marks") == [("label", "review")]
    finally:
        daemon.terminate()
        daemon.wait()


def test_forgetting_a_session_forgets_what_was_noted(marked):
    marked.run("sess", "forget", MAIN, "--yes", check=0)
    assert marked.sql("SELECT count(*) FROM own_marks") == [(0,)]


def of(world):
    return sorted(world.sql("SELECT agent, native_id, home, kind, value, at FROM own_marks"))


def page_of(world, name):
    with closing(apsw.Connection(str(world.state / "index.db"))) as db:
        db.pragma("wal_checkpoint(TRUNCATE)")
        ((page, size),) = db.execute(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema"
            " WHERE name = ?",
            (name,),
        )
    return (page - 1) * size, size


@pytest.mark.parametrize("lost", [None, "own_marks", "own_marks_by_session"])
def test_marks_outlive_the_transcript_and_a_damaged_index(marked, lost):
    """A page of the table or of its index is lost: the other one has all of it."""
    before = of(marked)
    for path in marked.projects.rglob("*.jsonl"):
        path.unlink()
    marked.ingest()
    assert of(marked) == before
    if lost is not None:
        at, size = page_of(marked, lost)
        with (marked.state / "index.db").open("r+b") as file:
            file.seek(at)
            file.write(b"\xff" * size)
        assert marked.run("sessiond", "repair").returncode in (0, 4)
        assert of(marked) == before
        marked.run("sess", "list", "--label", "review", check=0)


def test_a_backup_and_salvage_bring_them_along(marked, tmp_path):
    """Into another home, also when that has newer ones: those stay."""
    before = of(marked)
    copy = tmp_path / "copy.db"
    marked.run("sess", "backup", copy, check=0)
    marked.env["SESSIOND_HOME"] = str(tmp_path / "other")
    marked.state = tmp_path / "other"
    marked.run("sessiond", "sync", check=0)
    marked.run("sess", "title", MAIN, "newer", check=0)
    done = marked.run("sessiond", "salvage", copy, check=0)
    assert "loaded 3 titles, labels or pins" in done.stderr
    assert [row for row in of(marked) if row[3] != "title"] == [
        row for row in before if row[3] != "title"
    ]
    assert json.loads(marked.run("sess", "title", MAIN, "--json").stdout)["title"] == "newer"
    (marked.state / "index.db").unlink()
    marked.run("sessiond", "restore-backup", copy, check=0)
    assert of(marked) == before
