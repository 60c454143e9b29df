"""`sess restore --in-place` and `sess prune`: files go and come back byte for byte."""

from __future__ import annotations

import json
import os
import stat
from contextlib import closing

import pytest
from tests.cli.edit.conftest import rest

from sess_schema.connection import open_writer

FIRST = "11111111-1111-4111-8111-111111111111"
SECOND = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def two(world):
    """Two indexed sessions that nobody has written to for an hour."""
    made = []
    for name, folder in ((FIRST, "-one"), (SECOND, "-two")):
        t = world.transcript(name, folder)
        t.append(t.prompt(f"words of {name[:4]}"), t.answer("Yes."))
        rest(t.path)
        made.append(t)
    world.ingest()
    return made


def test_a_deleted_transcript_is_written_back(world, two):
    """To its path, private; undo deletes it again."""
    path = two[0].path
    raw = path.read_bytes()
    path.unlink()
    done = world.run("sess", "restore", FIRST, "--in-place", check=0)
    assert path.read_bytes() == raw
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert done.stderr.splitlines()[1].startswith("undo: sess undo ")
    again = world.run("sess", "restore", FIRST, "--in-place", check=0)
    assert again.stderr.endswith("is there already, byte for byte\n")
    world.run("sess", "undo", check=0)
    assert not path.exists()


def test_an_earlier_content_replaces_the_present_one_only_by_force(world, two):
    """And undo brings the present one back."""
    path = two[0].path
    old = path.read_bytes()
    new = old.splitlines(keepends=True)[1]
    path.write_bytes(new)
    rest(path)
    asked = ("sess", "restore", FIRST, "--in-place", "--generation", "1")
    refused = world.run(*asked, check=2)
    assert refused.stderr.splitlines()[1] == "hint: `--force` replaces it"
    assert path.read_bytes() == new
    world.run(*asked, "--force", check=0)
    assert path.read_bytes() == old
    world.run("sess", "undo", check=0)
    assert path.read_bytes() == new
    world.run("sess", "restore", FIRST, "--in-place", "-o", "x", check=2)


def test_pruned_transcripts_stay_searchable_and_come_back(world, two):
    """Only what the filters match is deleted; one undo brings all of it back."""
    before = [t.path.read_bytes() for t in two]
    asked = ("sess", "prune", "--agent", "claude", "--dry-run")
    named = world.run(*asked, "--json", check=0).stdout.splitlines()
    assert sorted(map(json.loads, named), key=lambda file: file["path"]) == [
        {"path": str(t.path), "size": len(raw), "done": False}
        for t, raw in zip(two, before, strict=True)
    ]
    listed = world.run(*asked, check=0)
    assert listed.stdout.splitlines()[-1].startswith("2 files, ")
    assert all(t.path.exists() for t in two)
    world.run("sess", "prune", FIRST, "--yes", check=0)
    assert [t.path.exists() for t in two] == [False, True]
    world.run("sess", "search", "words of 1111", check=0)
    world.run("sess", "undo", check=0)
    world.run("sess", "prune", "--older-than", "2026-03-01", "--yes", check=0)
    assert [t.path.exists() for t in two] == [False, False]
    world.run("sess", "prune", FIRST, "--yes", check=1)
    world.run("sess", "undo", check=0)
    assert [t.path.read_bytes() for t in two] == before


def test_what_is_not_archived_is_not_deleted(world, two):
    """A damaged archive, a file that was just written to, or one in use: the others still go."""
    with closing(open_writer(world.state / "index.db")) as db:
        source = db.execute("SELECT id FROM sources WHERE path = ?", (str(two[0].path),)).get
        db.execute("UPDATE chunks SET data = zeroblob(40) WHERE source_id = ?", (source,))
    done = world.run("sess", "prune", "--agent", "claude", "--yes", check=5)
    assert "its archived copy is damaged" in done.stderr
    assert "deleted 1 file" in done.stderr
    assert [t.path.exists() for t in two] == [True, False]
    third = world.transcript("33333333-3333-4333-8333-333333333333")
    third.append(third.prompt("new"))
    done = world.run("sess", "prune", third.session, "--yes", check=5)
    assert "was written to" in done.stderr
    assert os.path.exists(third.path)


def test_prune_needs_a_choice_and_an_answer(world, two):
    """Nothing is deleted by accident."""
    assert world.run("sess", "prune", check=2).stderr.startswith("sess: nothing to prune\n")
    done = world.run("sess", "prune", FIRST, stdin=-3, check=2)
    assert done.stderr.startswith("sess: nobody to ask\n")
    assert two[0].path.exists()
