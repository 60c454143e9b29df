"""Links, other people's directories and impossible settings: refused in one line."""

from __future__ import annotations

import os

import pytest

from sess_common import lock, paths
from sess_common.errors import SessError
from sessiond import config
from sessiond.service import notify


def test_a_link_planted_as_lock_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    planted = tmp_path / "sessiond.lock"
    planted.symlink_to(victim)
    with pytest.raises(SessError, match="symbolic link"):
        lock.acquire(planted)
    assert victim.read_text() == "mine"
    assert not lock.is_held(planted)


def test_a_link_to_nothing_planted_as_lock_creates_nothing(tmp_path):
    planted = tmp_path / "sessiond.lock"
    planted.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SessError, match="symbolic link"):
        lock.acquire(planted)
    assert not (tmp_path / "elsewhere").exists()


def test_a_pipe_planted_as_lock_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "sessiond.lock")
    with pytest.raises(SessError, match="not a file of yours"):
        lock.acquire(tmp_path / "sessiond.lock")


@pytest.mark.parametrize("name", ["sessiond.log", "status.json", "status.json.new"])
def test_links_planted_as_log_or_status_are_not_followed(world, name):
    victim = world.root / "victim"
    victim.write_text("mine")
    world.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    (world.state / name).symlink_to(victim)
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("ok"))
    world.run("sessiond", "sync")
    assert victim.read_text() == "mine"


def test_the_status_is_not_written_through_a_link(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "status.json.new").symlink_to(victim)
    (tmp_path / "status.json").symlink_to(victim)
    beat = notify.__dict__
    assert beat["_NO_LINK"] == getattr(os, "O_NOFOLLOW", 0)
    for name in ("status.json.new", "status.json"):
        with pytest.raises(OSError):
            os.open(tmp_path / name, os.O_WRONLY | os.O_TRUNC | beat["_NO_LINK"])
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_directory_that_others_can_write_to_is_refused_and_left_as_it_is(tmp_path, mode):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    with pytest.raises(SessError, match="other users"):
        paths.make_private(shared)
    assert shared.stat().st_mode & 0o7777 == mode


def test_a_directory_of_a_group_is_refused_unless_it_is_empty(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o770)
    (shared / "something").touch()
    with pytest.raises(SessError, match="other users"):
        paths.make_private(shared)
    (shared / "something").unlink()
    paths.make_private(shared)
    assert shared.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('[roots]\nclaude = [""]', "names no directory"),
        ('[roots]\nclaude = ["a\\u0000b"]', "names no directory"),
        ("[daemon]\nreconcile_seconds = nan", "must be a number"),
        ("[daemon]\nreconcile_seconds = inf", "must be a number"),
        ("[redact]\npatterns = ['(']", "invalid regular expression"),
        ("[redact]\npatterns = 'x'", "must be a list"),
        ("[redact]\nother = 1", "allows only patterns"),
    ],
)
def test_impossible_settings_are_told_in_one_line(tmp_path, settings, says):
    file = tmp_path / "config.toml"
    file.write_text(settings)
    with pytest.raises(SessError, match=says):
        config.load(file)


def test_the_example_of_the_configuration_is_valid(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(config.example_file())
    config.load(file)


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_a_link_planted_as_index_is_not_followed(world, end):
    """Neither by the writer nor by readers, whether it leads to something or not."""
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("ok"))
    world.run("sessiond", "sync", check=0)
    planted, victim = world.state / f"index.db{end}", world.root / "victim"
    planted.unlink(missing_ok=True)
    victim.write_text("mine")
    for target in (victim, world.root / "nothing"):
        planted.symlink_to(target)
        for program, *words in (("sessiond", "sync"), ("sess", "list", "--no-sync")):
            done = world.run(program, *words, check=4)
            assert f'index.db{end}" is a symbolic link\nhint: ' in done.stderr
        planted.unlink()
    assert victim.read_text() == "mine"
    assert not (world.root / "nothing").exists()


def test_repair_refuses_a_linked_index(world):
    """It would build a new one in the place of the link."""
    world.state.mkdir(mode=0o700)
    (world.root / "victim").write_text("mine")
    (world.state / "index.db").symlink_to(world.root / "victim")
    assert "is a symbolic link" in world.run("sessiond", "repair", check=4).stderr
    assert (world.state / "index.db").is_symlink()


@pytest.mark.parametrize("name", ["repairing.part", "index.db.new", "imports/list.jsonl"])
def test_nothing_is_written_through_links_planted_for_repair_and_import(world, name):
    victim = world.root / "victim"
    victim.write_text("mine")
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("ok"))
    handed = world.root / "handed.jsonl"
    handed.write_bytes(t.path.read_bytes())
    world.run("sessiond", "sync", check=0)
    (world.state / "index.db").write_bytes(b"damaged")
    (world.state / name).parent.mkdir(exist_ok=True, mode=0o700)
    (world.state / name).symlink_to(victim)
    world.run("sessiond", "repair", check=0)
    world.run("sess", "import", handed)
    assert victim.read_text() == "mine"
    world.run("sess", "check", check=0)
