"""Sessions whose records name no project get one from their folder."""

from __future__ import annotations

import itertools

import pytest
from tests.conftest import World

from sessiond.sourcekit.folders import coded

ONE = "11111111-1111-4111-8111-111111111111"
TWO = "22222222-2222-4222-8222-222222222222"
LOST = "33333333-3333-4333-8333-333333333333"
SLUG = "-home-nobody-tea-pot"
PROJECT = "/home/nobody/tea-pot"


def homeless(transcript, record):
    return transcript.encode({name: value for name, value in record.items() if name != "cwd"})


def without_cwd(world, session=ONE, folder=SLUG, **more):
    t = world.transcript(session, folder)
    return t.append(homeless(t, t.prompt("where am I", **more)))


def with_cwd(world, cwd, session=TWO, folder=SLUG):
    t = world.transcript(session, folder)
    return t.append(t.prompt("here", cwd=cwd))


def projects(world):
    return {
        session: (project, how)
        for session, project, how in world.sql(
            "SELECT native_id, project, project_from FROM sessions WHERE records > 0"
        )
    }


def test_a_name_that_nobody_explains_is_kept(world):
    """And marked as a name."""
    without_cwd(world)
    world.ingest()
    assert projects(world) == {ONE: (SLUG, "name")}


@pytest.mark.parametrize("name", ["tea", "%2Fhome%2Fnobody%2Ftea-pot"])
def test_any_folder_in_projects_names_one(world, name):
    """A plain name is one, and an encoded path is decoded."""
    without_cwd(world, folder=name)
    world.ingest()
    wanted = ("tea", "name") if name == "tea" else (PROJECT, "folder")
    assert projects(world) == {ONE: wanted}


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_a_session_in_the_same_folder_explains_its_name(world, order):
    """Whichever is read first, and also to subagents."""
    steps = (
        lambda: without_cwd(world),
        lambda: with_cwd(world, PROJECT),
        lambda: without_cwd(world, "agent-abc12345", f"{SLUG}/{LOST}/subagents"),
    )
    for number in order:
        steps[number]()
        world.ingest()
    assert projects(world) == {
        ONE: (PROJECT, "folder"),
        TWO: (PROJECT, None),
        "agent-abc12345": (PROJECT, "folder"),
    }


@pytest.mark.parametrize("first", ["tea-pot", "tea/pot"])
def test_sessions_that_disagree_explain_nothing(world, first):
    """Both paths are written as the same name."""
    other = {"tea-pot": "tea/pot", "tea/pot": "tea-pot"}[first]
    without_cwd(world)
    with_cwd(world, f"/home/nobody/{first}")
    world.ingest()
    with_cwd(world, f"/home/nobody/{other}", LOST)
    with_cwd(world, "/home/nobody", "44444444-4444-4444-8444-444444444444")
    world.ingest()
    assert projects(world)[ONE] == (SLUG, "name")


def test_a_directory_that_exists_explains_the_name(world, tmp_path):
    """Without any other session."""
    here = tmp_path / "tea.pot"
    here.mkdir()
    without_cwd(world, folder=coded(str(here)))
    world.ingest()
    assert projects(world) == {ONE: (str(here), "folder")}


def test_a_record_that_names_the_project_ends_the_guess(world):
    """However late it comes."""
    t = without_cwd(world)
    world.ingest()
    t.append(t.prompt("at last", cwd="/code/real"))
    world.ingest()
    assert projects(world) == {ONE: ("/code/real", None)}
    t.path.write_bytes(b"")
    t.count = 0
    t.append(homeless(t, t.prompt("no more")))
    world.ingest()
    assert projects(world) == {ONE: (SLUG, "name")}


def test_a_file_outside_a_projects_folder_has_no_project(world, tmp_path):
    """Its directory may be anything."""
    t = without_cwd(World(tmp_path / "elsewhere"))
    place = tmp_path / "downloads"
    place.mkdir()
    moved = t.path.rename(place / t.path.name)
    world.run("sessiond", "sync", moved, check=0)
    assert projects(world) == {ONE: (None, None)}
