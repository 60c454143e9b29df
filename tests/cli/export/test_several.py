"""Several sessions in one export: chosen alike in every format; one that fails stops no other."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest
from sqlite_utils import Database

from sess_schema.connection import open_writer

MAIN = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def two(world):
    for session, day in ((MAIN, "2026-02-01"), (OTHER, "2026-02-03")):
        t = world.transcript(session)
        t.append(
            t.prompt(f"ask {session[:4]}", timestamp=f"{day}T10:00:00.000Z"),
            t.answer(f"done with {session[:4]}", timestamp=f"{day}T10:00:01.000Z"),
        )
    world.ingest()
    return world


def exported(world, *options, check=0):
    done = world.run("sess", "export", "json", "-o", "-", "--no-sync", *options, check=check)
    return json.loads(done.stdout)


def test_json_takes_ids_and_a_time_like_the_other_exports(two):
    """Oldest first; one ID is a document of its own; an ID and a filter exclude each other."""
    both = exported(two, OTHER, MAIN)
    assert (both["format"], both["version"]) == ("sessiond-sessions", 2)
    assert [one["session"]["session"] for one in both["sessions"]] == [MAIN, OTHER]
    assert both == exported(two, "--since", "2026-01-01", "--utc")
    late = exported(two, "--since", "2026-02-02", "--until", "2026-02-04", "--utc")
    assert [one["session"]["session"] for one in late["sessions"]] == [OTHER]
    assert exported(two, MAIN)["format"] == "sessiond-session"
    for options in ((), (MAIN, "--since", "7d")):
        two.run("sess", "export", "json", "-o", "-", *options, check=2)
    two.run("sess", "export", "json", "-o", "-", "--since", "2027-01-01", check=1)


def broken(world):
    """The first session cannot be read: a list of its models is no JSON."""
    with closing(open_writer(world.state / "index.db")) as db:
        db.execute("UPDATE sessions SET models = '[' WHERE native_id = ?", (MAIN,))


def told(done):
    lines = done.stderr.splitlines()
    at = lines.index("sess: 1 session could not be exported:")
    return [line for line in lines[at + 1 :] if line.startswith(f"  {MAIN}: ")]


def test_a_document_names_the_session_that_failed_and_has_the_rest(two):
    broken(two)
    done = two.run("sess", "export", "md", "--since", "2000-01-01", "-o", "-", "--no-sync", check=5)
    assert f"*Session `{MAIN}` could not be exported: " in done.stdout
    assert "done with 2222" in done.stdout
    assert "done with 1111" not in done.stdout
    assert len(told(done)) == 1


def test_a_tree_has_the_notes_of_all_other_sessions(two, tmp_path):
    broken(two)
    done = two.run("sess", "export", "md", "--tree", tmp_path / "vault", "--no-sync", check=5)
    assert done.stderr.startswith(f"wrote 1 note to {tmp_path / 'vault'}\n")
    assert len(told(done)) == 1
    (folder,) = (tmp_path / "vault").iterdir()
    (note,) = [path for path in folder.iterdir() if path.stem != folder.name]
    assert "done with 2222" in note.read_text()


def test_data_have_all_other_sessions(two, tmp_path):
    broken(two)
    failed, whole = exported(two, "--since", "2000-01-01", check=5)["sessions"]
    assert failed.keys() == {"session", "failed"}
    assert failed["session"] == {"session": MAIN, "agent": "claude"}
    assert [event["text"] for event in whole["events"]] == ["ask 2222", "done with 2222"]
    target = tmp_path / "out.db"
    assert len(told(two.run("sess", "export", "sqlite", "-o", target, "--no-sync", check=5))) == 1
    with closing(Database(target)) as db:
        assert [row["session"] for row in db["sessions"].rows] == [OTHER]
        assert db["events"].count == 2


def test_a_record_whose_piece_of_the_archive_is_damaged_has_a_place(world):
    """One bit of the packed piece is flipped: the events stay, and each record says it is lost."""
    t = world.transcript(MAIN)
    t.append(t.prompt("hello"), t.call("c1", command="make tea"), t.result("c1", "done"))
    world.ingest()
    with closing(open_writer(world.state / "index.db")) as db:
        ((key, data),) = db.execute("SELECT id, data FROM chunks").fetchall()
        assert isinstance(data, bytes)
        flipped = bytearray(data)
        flipped[len(flipped) // 2] ^= 1
        db.execute("UPDATE chunks SET data = ? WHERE id = ?", (bytes(flipped), key))
    document = exported(world, MAIN, check=5)
    assert [event["type"] for event in document["events"]] == ["user", "tool_use"]
    assert [record["damaged"] for record in document["records"]] == [True] * 3
    assert all("value" not in record for record in document["records"])
    for form in ("html", "md"):
        done = world.run("sess", "export", form, MAIN, "-o", "-", "--no-sync", check=5)
        assert done.stdout.count("A part of this record is damaged in the archive") == 1


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_depth_says_how_many_levels_of_subagents_are_there(world, form):
    """Nothing of a deeper one is in the file; without the option everything is."""
    t = world.transcript(MAIN)
    t.append(t.prompt("go"), t.call("c1", "Task", prompt="x", description="d"))
    agent = world.transcript("agent-7")
    agent.path = t.path.with_suffix("") / "subagents" / "agent-7.jsonl"
    agent.path.parent.mkdir(parents=True)
    agent.append(agent.prompt("the inner words", sessionId=MAIN, isSidechain=True))
    agent.path.with_suffix(".meta.json").write_text(json.dumps({"toolUseId": "c1"}))
    world.ingest()
    for options, there in (((), True), (("--depth", "1"), True), (("--depth", "0"), False)):
        done = world.run("sess", "export", form, MAIN, "-o", "-", "--no-sync", *options, check=0)
        assert ("the inner words" in done.stdout) is there, options


def page(world, tmp_path, *options, check=0):
    out = tmp_path / "all.html"
    done = world.run(
        "sess", "export", "html", "-o", out, "--force", "--no-sync", "--utc", *options, check=check
    )
    return out.read_text() if check != 2 else "", done


def test_several_sessions_are_one_page_with_a_head_and_an_outline_of_each(two, tmp_path):
    """Oldest first, below one title; the same sessions by ID and by time."""
    html, _ = page(two, tmp_path, OTHER, MAIN)
    heads = re.findall(r'<article class="card session" id="(\w+)" data-n="(\d+)"', html)
    assert [number for _, number in heads] == ["0", "3"]
    assert re.findall(r'<li class="session"><a href="#(\w+)"', html) == [key for key, _ in heads]
    assert ": 2 sessions</h1>" in html
    assert html.index("done with 1111") < html.index("done with 2222")
    assert "<h2>2 prompts</h2>" in html
    assert page(two, tmp_path, "--since", "2026-01-01")[0] == html
    late, _ = page(two, tmp_path, "--since", "2026-02-02")
    assert "done with 1111" not in late
    assert len(set(re.findall(r'<article[^>]* id="([^"]+)"', html))) == html.count("<article")


def test_a_title_that_is_the_first_prompt_is_not_in_the_outline_twice(two, tmp_path):
    html, _ = page(two, tmp_path, OTHER, MAIN)
    heads = re.findall(r'<li class="session"><a[^>]*>(.*?)</a>', html)
    assert heads == ["2026-02-01", "2026-02-03"]


def test_a_page_says_which_session_could_not_be_drawn_and_has_the_rest(two, tmp_path):
    broken(two)
    html, done = page(two, tmp_path, MAIN, OTHER, check=5)
    assert "done with 2222" in html
    assert "It could not be exported: " in html
    assert len(told(done)) == 1


def test_a_timeline_and_numbered_pages_are_of_one_session(two, tmp_path):
    for style in ("timeline", "pages"):
        _, done = page(two, tmp_path, MAIN, OTHER, "--style", style, check=2)
        assert f"--style {style} is for one session" in done.stderr
