"""Pieces of the archive that are missing or damaged: all commands say so until it is accepted."""

from __future__ import annotations

import shutil
from contextlib import closing

import pytest
from tests.golden_home import GoldenWorld

from sess_schema import archive, page_sums

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def holed(world):
    """A deleted transcript; the only piece of its archive is missing."""
    t = world.transcript(MAIN)
    t.append(t.prompt("hello"), t.call("c1", command="make tea"), t.result("c1", "done"))
    world.ingest()
    t.path.unlink()
    world.ingest()
    change(world, "DELETE FROM chunks")
    return world


def change(world, sql, *values):
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        db.execute(sql, values)


@pytest.mark.parametrize("command", [("show", MAIN, "--json"), ("export", "json", MAIN, "-o", "-")])
def test_a_missing_piece_is_told(holed, command):
    """As a damaged one is; what is known all the same is shown."""
    done = holed.run("sess", *command, check=5)
    assert "of the archive could not be read\n" in done.stderr
    assert "make tea" in done.stdout


def test_the_doctor_finds_gaps_without_reading_pieces(holed):
    """In its quick form."""
    done = holed.run("sess", "doctor", "--json")
    assert done.returncode == 4
    assert "are missing" in done.stdout


def test_a_piece_is_archived_again_if_the_file_has_it(world):
    """A gap in the middle, too."""
    t = world.transcript(MAIN)
    for number in range(3):
        t.append(t.prompt(f"{number} " + "words " * 20_000))
        world.ingest()
    assert world.sql("SELECT count(*) FROM chunks") == [(3,)]
    change(world, "DELETE FROM chunks WHERE offset > 0 AND id < (SELECT max(id) FROM chunks)")
    world.run("sess", "check", check=4)
    world.run("sessiond", "repair", check=0)
    world.run("sess", "check", check=0)
    assert world.restored(t.path) == t.path.read_bytes()


def test_accepted_losses_are_named_once_and_no_longer_fail(holed):
    """And a new loss is not accepted with them."""
    holed.run("sessiond", "repair", check=4)
    done = holed.run("sessiond", "repair", "--accept-losses", check=0)
    assert "are missing\naccepted 1 loss" in done.stderr
    said = holed.run("sess", "check", check=0).stdout
    assert "are lost, which was accepted" in said
    assert "make tea" in holed.run("sess", "show", MAIN, "--json", check=0).stdout
    holed.run("sessiond", "repair", check=0)
    other = holed.transcript("22222222-2222-4222-8222-222222222222")
    other.append(other.prompt("another"))
    holed.ingest()
    other.path.unlink()
    holed.ingest()
    change(holed, "DELETE FROM chunks")
    holed.run("sess", "check", check=4)


def test_a_damaged_piece_is_dropped_when_it_is_accepted(world):
    """The rest of the file is restored, and its length told."""
    t = world.transcript(MAIN)
    for number in range(3):
        t.append(t.prompt(f"{number} " + "words " * 20_000))
        world.ingest()
    content = t.path.read_bytes()
    t.path.unlink()
    world.ingest()
    ((key, offset, length, packed),) = world.sql(
        "SELECT id, offset, length, data FROM chunks ORDER BY offset LIMIT 1 OFFSET 1"
    )
    change(world, "UPDATE chunks SET data = ? WHERE id = ?", packed[:-9] + b"123456789", key)
    world.run("sessiond", "repair", check=4)
    world.run("sessiond", "repair", "--accept-losses", check=0)
    world.run("sess", "check", check=0)
    done = world.run("sess", "restore", MAIN, "-o", world.root / "back", check=5)
    rest = content[:offset] + content[offset + length :]
    assert (world.root / "back").read_bytes() == rest
    assert f"has {len(rest):,} of the {len(content):,} bytes" in done.stderr
    t.path.write_bytes(content)  # it comes back
    world.ingest()
    assert world.restored(t.path) == content
    world.run("sess", "check", check=0)


def test_records_of_databases_that_are_missing_are_named(tmp_path):
    """Each is a piece of its own."""
    world = GoldenWorld(tmp_path, "goose")
    for part in world.parts:
        world.lay(part)
    world.ingest()
    shutil.rmtree(world.root)
    world.root.mkdir()
    world.ingest()
    world.run("sess", "check", check=0)
    change(world, "DELETE FROM chunks WHERE id = (SELECT max(id) FROM chunks)")
    assert "is missing\n" in world.run("sess", "check", check=4).stdout
    world.run("sessiond", "repair", check=4)
    world.run("sessiond", "repair", "--accept-losses", check=0)
    world.run("sess", "check", check=0)
    archive.met.clear()
