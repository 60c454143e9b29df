"""`sess export md` of several sessions: one document, or a tree of notes."""

from __future__ import annotations

import json

MAIN = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def two(world):
    for session, words in ((MAIN, "fix: the [flaky] test?"), (OTHER, f"use {SECRET}")):
        t = world.transcript(session)
        t.append(t.prompt(words), t.answer(f"done with {session[:4]}"))
    world.ingest()


def test_sessions_of_a_time_become_one_document(world, tmp_path):
    """Both are there whole, below a list, and an ID with a choice is refused."""
    two(world)
    done = world.run("sess", "export", "md", "--since", "2000-01-01", "-o", "-", check=0)
    assert done.stdout.startswith("# 2 sessions\n\n- ")
    assert "done with 1111" in done.stdout
    assert "done with 2222" in done.stdout
    assert SECRET not in done.stdout
    world.run("sess", "export", "md", MAIN, "--since", "7d", "-o", "-", check=2)
    done = world.run("sess", "export", "md", check=2)
    assert done.stderr.startswith("sess: no session named\n")


def test_a_tree_has_a_note_per_session_and_an_index_per_project(world, tmp_path):
    """Names have nothing that Obsidian refuses, nothing leaks, and a second run adds nothing."""
    two(world)
    for _ in range(2):
        world.run("sess", "export", "md", "--tree", tmp_path / "vault", "--utc", check=0)
        (folder,) = (tmp_path / "vault").iterdir()
        notes = sorted(path.name for path in folder.iterdir())
        assert len(notes) == 3
    index = (folder / f"{folder.name}.md").read_text()
    for path in folder.iterdir():
        assert SECRET not in path.name + path.read_text()
        assert not set(path.name) & set('*"\\/<>:|?#^[]')
        assert path.read_text().startswith("---\nsource: sessiond\n")
        if path.stem != folder.name:
            assert f"[[{folder.name}/{path.stem}|{path.stem}]]" in index
    (flaky,) = [path for path in folder.iterdir() if "fix the flaky test" in path.name]
    front = flaky.read_text().split("---\n")[1].splitlines()[1:]
    facts = {name: json.loads(value) for name, _, value in (one.partition(": ") for one in front)}
    assert facts["title"] == "fix: the [flaky] test?"
    assert facts["agent"] == "claude"
    assert facts["session"] == MAIN
    assert facts["tags"][:2] == ["sessiond", "agent/claude"]


def test_a_tree_replaces_no_note_of_somebody_else(world, tmp_path):
    two(world)
    world.run("sess", "export", "md", MAIN, "--tree", tmp_path / "vault", check=0)
    (folder,) = (tmp_path / "vault").iterdir()
    index = folder / f"{folder.name}.md"
    index.write_text("mine")
    world.run("sess", "export", "md", MAIN, "--tree", tmp_path / "vault", check=2)
    assert index.read_text() == "mine"
