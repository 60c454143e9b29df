"""`sess backup` and `sessiond restore-backup`: whole, verified, and small when little changed."""

from __future__ import annotations

import os
import stat

import pytest
from tests.waiting import wait_until

from sess_common.errors import SessError
from sess_schema import archive
from sess_schema.backups import hash_of, verified

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def filled(world):
    t = world.transcript(MAIN)
    t.append(*(t.prompt(f"prompt {number} {'words ' * 500}") for number in range(200)))
    world.ingest()
    return t


def lose(world, t):
    """The index and the transcript, at once."""
    t.path.unlink()
    for path in world.state.glob("index.db*"):
        path.unlink()


def test_a_file_is_a_whole_private_copy(world, filled, tmp_path):
    """It brings everything back, also when the transcript is gone; a taken name is refused."""
    raw, before = filled.path.read_bytes(), world.dump()
    target = tmp_path / "copy.db"
    done = world.run("sess", "backup", target, check=0)
    assert done.stderr.startswith(f'backed up to "{target}" (')
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert world.run("sess", "backup", target, check=2).stderr == (
        f'sess: "{target}" already exists\nhint: name a new file or a folder\n'
    )
    lose(world, filled)
    world.run("sessiond", "restore-backup", target, check=0)
    assert world.restored(filled.path) == raw
    assert world.dump() == before
    world.run("sess", "check", check=0)
    assert '"backup"' in (world.state / "upkeep.json").read_text()


def test_a_folder_keeps_every_backup_and_writes_only_what_changed(world, filled, tmp_path):
    """The second one is small, each can be restored, and the index replaced is kept."""
    folder = tmp_path / "backups"
    world.run("sess", "backup", f"{folder}{os.sep}", check=0)
    first = sum(path.stat().st_size for path in folder.iterdir())
    (earlier,) = (path.stem for path in folder.glob("*.manifest"))
    filled.append(filled.prompt("a late prompt"))
    # A name of its own has a second backup a second later.
    wait_until(lambda: world.run("sess", "backup", folder, "--json").returncode == 0)
    second = sum(path.stat().st_size for path in folder.iterdir()) - first
    assert second < first / 2
    raw = filled.path.read_bytes()
    lose(world, filled)
    world.run("sessiond", "restore-backup", folder, check=0)
    assert world.restored(filled.path) == raw
    world.run("sessiond", "restore-backup", folder, "--at", earlier, check=0)
    assert world.found("late") == []
    assert len([*world.state.glob("replaced-*/index.db")]) == 1
    done = world.run("sessiond", "restore-backup", folder, "--at", "never", check=1)
    assert done.stderr.startswith(f'sessiond: no backup "never" in "{folder}"\nhint: there are: ')


def test_a_damaged_backup_is_refused_and_the_index_stays(world, filled, tmp_path):
    """One flipped bit in a pack or a manifest is found before anything is replaced."""
    folder = tmp_path / "backups"
    folder.mkdir()
    world.run("sess", "backup", folder, check=0)
    before = world.dump()
    for ending in (".pack", ".manifest"):
        (path,) = folder.glob(f"*{ending}")
        raw = path.read_bytes()
        damaged = bytearray(raw)
        damaged[len(raw) // 2] ^= 1
        path.write_bytes(damaged)
        world.run("sessiond", "restore-backup", folder, check=4)
        assert world.dump() == before
        path.write_bytes(raw)
    world.run("sessiond", "restore-backup", folder, check=0)
    assert world.dump() == before


def test_a_page_in_the_place_of_another_is_refused(tmp_path):
    """An intact page is not enough: it must be the one that the manifest lists."""
    pack = tmp_path / "some.pack"
    pack.write_bytes(archive.pack(b"other"))
    with pack.open("rb") as file:
        place = (0, pack.stat().st_size)
        assert verified(file.fileno(), hash_of(b"other"), place) == b"other"
        with pytest.raises(SessError, match="is damaged or missing"):
            verified(file.fileno(), hash_of(b"page"), place)


def test_an_interrupted_backup_counts_for_nothing(world, filled, tmp_path):
    """A pack without a manifest is not a backup, and the next one removes it."""
    folder = tmp_path / "backups"
    folder.mkdir()
    for end in ("pack", "part"):
        (folder / f"20200101T000000Z.{end}").write_bytes(b"torn")
    world.run("sessiond", "restore-backup", folder, check=1)
    world.run("sess", "backup", folder, check=0)
    assert not list(folder.glob("20200101T000000Z.*"))


def test_a_copy_is_made_while_the_daemon_writes(world, filled, tmp_path):
    """It is consistent: the copy passes every check in a home of its own."""
    daemon = world.start()
    try:
        wait_until(lambda: world.run("sessiond", "status").returncode == 0)
        for number in range(5):
            filled.append(filled.prompt(f"live {number}"))
            world.run("sess", "backup", tmp_path / f"{number}.db", check=0)
    finally:
        daemon.terminate()
        daemon.wait()
    other = {**world.env, "SESSIOND_HOME": str(tmp_path / "other")}
    world.env, before = other, world.env
    try:
        world.run("sessiond", "restore-backup", tmp_path / "4.db", check=0)
        world.run("sess", "check", check=0)
    finally:
        world.env = before


def test_a_file_that_is_no_backup_is_named(world, tmp_path):
    """Not the copy that was tried, with advice to repair an index that is sound."""
    other = tmp_path / "notes.txt"
    other.write_text("no database\n")
    done = world.run("sessiond", "restore-backup", other, check=4)
    assert done.stderr == (
        f'sessiond: "{other}" is not a backup\nhint: name what `sess backup` wrote\n'
    )
