"""A damaged index whose files are gone: everything intact comes back, and what is lost is named."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing

import apsw
import pytest
from tests.at_length import count, seeds
from tests.conftest import World
from tests.faults import damage

from sess_schema import archive, page_sums
from sess_schema.connection import open_reader, open_writer
from sessiond.ingest import Ingest
from sessiond.service import rescue
from sessiond.writing.transaction import Store

SESSIONS = 12
IMMUTABLE = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory):
    """A world whose transcripts were read and deleted, and its index."""
    world = World(tmp_path_factory.mktemp("spoiled"))
    chance = random.Random(7)
    for number in range(SESSIONS):
        t = world.transcript(f"{number:08}-1111-4111-8111-111111111111")
        for turn in range(chance.randint(1, 12)):
            noise = "".join(chance.choices("abcdefghij klmnop", k=chance.choice((50, 30_000))))
            t.append(t.prompt(f"prompt {number} {turn} {noise}"), t.answer(f"answer {turn}"))
        world.ingest()
        if number % 4 == 0:  # a rewritten file has an earlier content
            t.path.write_bytes(b"")
            t.append(t.prompt(f"begun anew {number}"))
    world.ingest()
    for path in world.projects.rglob("*.jsonl"):
        path.unlink()
    world.ingest()
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        db.execute("VACUUM")  # no older copies of pieces on free pages
        db.pragma("wal_checkpoint(TRUNCATE)")
    return world


def intact_pieces(index):
    with closing(open_reader(index)) as db:
        every = [bytes(data) for (data,) in db.execute("SELECT data FROM chunks")]
    return {data for data in every if is_intact(data)}


def is_intact(data):
    try:
        archive.unpack(data)
    except archive.Damaged:
        archive.met.clear()
        return False
    return True


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_every_piece_on_an_untouched_page_comes_back(spoiled, tmp_path, seed):
    """Bit flips, torn, zeroed and missing pages, a lost header: `check` tells, `repair` keeps all.

    The seed reproduces the damage.
    """
    index = spoiled.state / "index.db"
    pristine = index.read_bytes()
    where = damage.whereabouts(index)
    chance = random.Random(seed)
    raw = bytearray(pristine)
    touched = damage.KINDS[seed % len(damage.KINDS)](raw, chance)
    env = {**spoiled.env, "SESSIOND_HOME": str(tmp_path)}
    (tmp_path / "index.db").write_bytes(raw)
    (tmp_path / "index.db").chmod(0o600)
    tmp_path.chmod(0o700)
    spoiled.env, before = env, spoiled.env
    try:
        checked = spoiled.run("sess", "check")
        done = spoiled.run("sessiond", "repair")
        assert done.returncode in (0, 4), done.stderr
        assert checked.returncode == 4 or done.stderr == "the index is sound\n", checked
        expected = {data for data, pages in where.values() if not pages & touched}
        kept = intact_pieces(tmp_path / "index.db")
        assert expected <= kept
        every = {data for data, _ in where.values()}
        assert kept <= every
        assert ("lost: " in done.stderr) == (kept < every) == (done.returncode == 4)
        said = spoiled.run("sess", "check").stdout
        assert said.count("fail") == said.count("fail  archive"), said
        spoiled.run("sess", "search", "prompt", "--no-sync", check=0 if kept else None)
        count("damages")
    finally:
        spoiled.env = before


def cut(wal, chance):
    os.truncate(wal, chance.randrange(wal.stat().st_size))


def flip(wal, chance):
    raw = bytearray(wal.read_bytes())
    damage.flip_bits(raw, chance)
    wal.write_bytes(raw)


def delete(wal, _chance):
    wal.unlink()


def delete_lock(wal, _chance):
    wal.with_name("sessiond.lock").unlink()


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The files of an index whose last commits are only in its WAL; the transcripts are gone."""
    world = World(tmp_path_factory.mktemp("logged"))
    kept = world.root / "kept"
    for number in range(6):
        t = world.transcript(f"{number:08}-1111-4111-8111-111111111111")
        t.append(*(t.prompt(f"prompt {number} {turn} {'words ' * 900}") for turn in range(5)))
        if number < 3:
            world.ingest()
    (world.state / "sessiond.lock").touch()
    index = world.state / "index.db"
    with closing(open_writer(index)) as db:
        db.wal_autocheckpoint(0)
        Ingest(Store(db)).reconcile(world.places())
        shutil.copytree(world.state, kept)
    shutil.rmtree(world.projects)
    return world, kept, intact_pieces(index)


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_a_damaged_or_lost_wal_costs_only_what_is_in_it(logged, tmp_path, seed):
    """Cut off, flipped, deleted, or only the lock is: what was in the index stays."""
    world, kept, pieces = logged
    chance = random.Random(seed)
    harm = (cut, flip, delete, delete_lock)[seed % 4]
    home = tmp_path / "home"
    shutil.copytree(kept, home)
    with closing(apsw.Connection(f"file:{home / 'index.db'}?immutable=1", flags=IMMUTABLE)) as db:
        expected = {bytes(data) for (data,) in db.execute("SELECT data FROM chunks")}
    assert 0 < len(expected) < len(pieces)
    (home / "index.db-shm").unlink()
    harm(home / "index.db-wal", chance)
    before, world.env = world.env, {**world.env, "SESSIOND_HOME": str(home)}
    try:
        done = world.run("sessiond", "repair")
        found = intact_pieces(home / "index.db")
        named = "lost: " in done.stderr
        assert (done.returncode == 4) == named == (found < pieces), done.stderr
        assert done.stderr.endswith("the index is sound\n") == (found == pieces)
        world.run("sess", "check", check=done.returncode)
    finally:
        world.env = before
    assert expected <= found <= pieces
    count("damages")
    if harm is delete_lock:
        assert found == pieces


def test_a_salvaged_index_is_what_it_was(spoiled, tmp_path):
    """Out of an intact file: the same sessions, events, numbers and bytes, in a home of its own."""
    before = spoiled.env, spoiled.state
    expected = spoiled.dump()
    spoiled.env = {**spoiled.env, "SESSIOND_HOME": str(tmp_path / "new")}
    try:
        spoiled.run("sessiond", "salvage", before[1] / "index.db", check=0)
        spoiled.state = tmp_path / "new"
        got = spoiled.dump()
        assert got == expected
        again = spoiled.run("sessiond", "salvage", before[1] / "index.db", check=0)
        assert (
            again.stderr == f"loaded 0 files with 0 archived pieces; {SESSIONS} had nothing new\n"
        )
        assert spoiled.dump() == got
    finally:
        spoiled.env, spoiled.state = before


def test_a_piece_of_a_file_that_still_exists_is_read_again(world):
    """A damaged piece is replaced from the live file, and the check passes again."""
    t = world.transcript()
    t.append(t.prompt("hello"), t.answer("there"))
    world.ingest()
    raw = t.path.read_bytes()
    before = world.dump()
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        data = bytearray(db.execute("SELECT data FROM chunks").get)
        data[20] ^= 1
        db.execute("UPDATE chunks SET data = ?", (bytes(data),))
    world.run("sess", "check", check=4)
    done = world.run("sessiond", "repair", check=0)
    assert done.stderr == "the index is sound\n"
    world.run("sess", "check", check=0)
    assert world.restored(t.path) == raw
    assert world.dump() == before


def test_a_lost_piece_is_named_and_the_rest_stays(world):
    """Without the file nothing can replace it: repair says so each time, and loses nothing else."""
    first, second = world.transcript(), world.transcript("2" * 8 + "-1111-4111-8111-111111111111")
    for t in (first, second):
        t.append(t.prompt("hello"))
    world.ingest()
    size = first.path.stat().st_size
    for t in (first, second):
        t.path.unlink()
    world.ingest()
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        key = db.execute("SELECT id FROM sources WHERE path = ?", (str(first.path),)).get
        data = bytearray(db.execute("SELECT data FROM chunks WHERE source_id = ?", (key,)).get)
        data[20] ^= 1
        db.execute("UPDATE chunks SET data = ? WHERE source_id = ?", (bytes(data), key))
    for _ in range(2):
        done = world.run("sessiond", "repair", check=4)
        assert done.stderr == f"lost: {first.path}: bytes 0 to {size} are damaged\n"
    assert len(world.restored(second.path)) == size
    assert world.found("hello") == ["hello", "hello"]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM records WHERE line = 1", "removed 1 row that led nowhere"),
        ("DELETE FROM events WHERE type = 'user'", "removed 1 row that led nowhere"),
        ("UPDATE event_texts SET text = 'other' WHERE text = 'hello'", "built the full-text"),
        ("UPDATE event_sums SET prompts = 9", "summed everything up again"),
    ],
)
def test_derived_rows_are_made_again(world, sql, said):
    """What was deleted comes back out of the archive, with the transcript gone."""
    t = world.transcript()
    t.append(t.prompt("hello"), t.call("c", command="x"), t.result("c", "done"))
    world.ingest()
    t.path.unlink()
    world.ingest()
    before = world.dump()
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        triggers = list(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute(sql)
        for _, made in triggers:
            db.execute(made)
    world.run("sess", "check", check=4)
    done = world.run("sessiond", "repair", check=0)
    assert said in done.stderr
    world.run("sess", "check", check=0)
    assert world.dump() == before


def test_a_damaged_index_is_never_written_to(spoiled, tmp_path):
    """Between the steps of a repair every writer refuses, and a second repair finishes it."""
    index = tmp_path / "index.db"
    raw = bytearray((spoiled.state / "index.db").read_bytes())
    damage.zero_pages(raw, random.Random(3))
    kept = tmp_path / "damaged-1" / "index.db"
    kept.parent.mkdir()
    for path in (index, kept):
        path.write_bytes(raw)
    (tmp_path / "repairing").write_text(str(kept))
    tmp_path.chmod(0o700)
    before, spoiled.env = spoiled.env, {**spoiled.env, "SESSIOND_HOME": str(tmp_path)}
    try:
        done = spoiled.run("sessiond", "sync", check=4)
        assert done.stderr == (
            "sessiond: a repair of the index was interrupted\nhint: `sessiond repair` finishes it\n"
        )
        assert index.read_bytes() == raw
        spoiled.run("sessiond", "repair")
        spoiled.run("sess", "check", check=0)
        assert not (tmp_path / "repairing").exists()
        assert kept.read_bytes() == raw
    finally:
        spoiled.env = before


def test_a_repair_a_moment_after_another_keeps_its_own_copy(tmp_path):
    """The names of what is kept have seconds; a second one gets another name."""
    kept = [rescue._new_folder(tmp_path / "damaged-20260101-000000") for _ in range(3)]
    assert [path.name[23:] for path in kept] == ["", "+2", "+3"]
    assert all(path.is_dir() for path in kept)


def test_the_archive_of_an_unnamed_source_is_kept(world, tmp_path):
    """If the row that names a file is lost, its bytes are kept under lost+found."""
    t = world.transcript()
    t.append(t.prompt("hello"))
    raw = t.path.read_bytes()
    world.ingest()
    t.path.unlink()
    damaged = tmp_path / "old.db"
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        db.execute("VACUUM INTO ?", (str(damaged),))
    with closing(page_sums.opened(str(damaged))) as db:
        db.execute("UPDATE sources SET path = 'nowhere'")  # as good as lost
    (world.state / "index.db").unlink()
    done = world.run("sessiond", "salvage", damaged, check=5)
    found = str(world.state / "lost+found" / "1.jsonl")
    assert f"lost: {found}: its name" in done.stderr
    assert world.restored(found) == raw
    assert world.found("hello") == ["hello"]
    assert archive.met == []


def test_a_file_with_nothing_of_ours_in_it_is_named(world, tmp_path):
    """Not "loaded 0 files" and success."""
    other = tmp_path / "other"
    other.write_bytes(b"root:x:0:0\n" * 500)
    done = world.run("sessiond", "salvage", other, check=1)
    assert done.stderr == (
        f'sessiond: nothing of an index was found in "{other}"\n'
        "hint: name a damaged index, or one that was moved aside\n"
    )
