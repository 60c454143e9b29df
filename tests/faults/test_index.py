"""A faulty index is named, explained and never modified."""

from __future__ import annotations

import os
import random
from contextlib import closing

import pytest
from tests.must import must

from sess_common.errors import Exit, SessError
from sess_schema import migrate, page_sums
from sess_schema.connection import open_reader
from sess_schema.migrate import latest

PAGE = 1024


def garbage(index):
    index.write_bytes(random.Random(1).randbytes(5 * PAGE))


def text(index):
    index.write_text("this is not a database\n" * 1000)


def truncated(index):
    os.truncate(index, index.stat().st_size // 2)


def cut_inside_the_first_page(index):
    os.truncate(index, PAGE // 2)


def flipped(index):
    """Inverted bytes in the page that holds the schema."""
    data = bytearray(index.read_bytes())
    for place in range(100, 400):
        data[place] ^= 0xFF
    index.write_bytes(data)


def flipped_sources(index):
    """The same in the root page of a table."""
    with closing(page_sums.opened(str(index))) as db:
        root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sources'").get
        start = (root - 1) * db.pragma("page_size")
    data = bytearray(index.read_bytes())
    for place in range(start, start + 200):
        data[place] ^= 0xFF
    index.write_bytes(data)


def newer(index):
    with closing(page_sums.opened(str(index))) as db:
        db.pragma("user_version", migrate.latest() + 1)


def foreign(index):
    index.unlink()
    with closing(page_sums.opened(str(index))) as db:
        db.execute("CREATE TABLE bookmarks (url); INSERT INTO bookmarks VALUES ('x')")


def foreign_with_id(index):
    foreign(index)
    with closing(page_sums.opened(str(index))) as db:
        db.pragma("application_id", 0x0F055112)


DAMAGED = 'index "{}" is damaged: '
CASES = {
    garbage: DAMAGED,
    text: DAMAGED,
    truncated: DAMAGED,
    cut_inside_the_first_page: DAMAGED,
    flipped: DAMAGED,
    flipped_sources: DAMAGED,
    newer: 'index "{}" was written by a newer sessiond'
    f" (schema {latest() + 1}; this one supports up to {latest()})",
    foreign: '"{}" belongs to another program',
    foreign_with_id: '"{}" belongs to another program',
}
COMMANDS = [
    ("sessiond", "sync"),
    ("sess", "search", "words"),
    ("sess", "search", "--no-sync", "words"),
    ("sessiond", "status"),
]


@pytest.fixture
def index(world):
    """A sound index without a WAL."""
    t = world.transcript()
    t.append(*(t.prompt(f"words {n} " * 20) for n in range(200)))
    world.run("sessiond", "sync", check=0)
    t.append(t.prompt("more words"))
    return world.state / "index.db"


def assert_explained(world, index, message, program, *arguments):
    """Exit 4, and nothing but lines that name the index, each with its hint."""
    done = world.run(program, *arguments)
    assert done.returncode == Exit.INDEX_UNUSABLE, done
    said = [line for line in done.stderr.splitlines() if " INFO " not in line]
    assert len(said) in (2, 4), done.stderr  # `sess` and the sync that it runs may both report it
    for line, hint in zip(said[::2], said[1::2], strict=True):
        assert line.partition(": ")[2].startswith(message.format(index)), done.stderr
        assert hint.startswith("hint: ")


@pytest.mark.parametrize("harm", CASES, ids=lambda harm: harm.__name__)
def test_an_index_that_cannot_be_used_is_named_and_left_alone(world, index, harm):
    """Both programs: one line with its path, a hint, exit 4; no byte of it changes."""
    harm(index)
    before = index.read_bytes()
    for command in COMMANDS:
        assert_explained(world, index, CASES[harm], *command)
        assert index.read_bytes() == before, command


@pytest.mark.parametrize("command", [("sessiond", "start"), ("sess", "list"), ("sess", "doctor")])
def test_no_command_touches_a_damaged_index(world, index, command):
    """The daemon does not start on it, a listing fails, `doctor` examines and explains it."""
    garbage(index)
    before = index.read_bytes()
    done = world.run(*command)
    assert done.returncode == Exit.INDEX_UNUSABLE
    assert f'index "{index}" is damaged' in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert index.read_bytes() == before


def test_the_hint_for_a_damaged_index_works(world, index):
    """After the repair that the hint names, everything is there again, and so is the old file."""
    garbage(index)
    raw = index.read_bytes()
    hint = world.run("sessiond", "sync", check=4).stderr.splitlines()[1]
    assert hint.startswith("hint: `sessiond stop`, then `sessiond repair`")
    world.run("sessiond", "repair")
    assert [path.read_bytes() for path in world.state.glob("damaged-*/index.db")] == [raw]
    world.run("sessiond", "sync", check=0)
    assert world.sql("SELECT count(*) FROM events") == [(201,)]


def test_a_directory_in_the_place_of_the_index_is_named(world):
    """SQLite cannot open it: one line, a hint, exit 4."""
    index = world.state / "index.db"
    index.mkdir(parents=True)
    (index / "file").write_text("kept")
    for command in COMMANDS:
        assert_explained(world, index, 'cannot use index "{}": ', *command)
    assert (index / "file").read_text() == "kept"


def test_an_empty_file_becomes_the_index(world):
    """A crash right after creating the file leaves an empty one, which is used."""
    t = world.transcript()
    t.append(t.prompt("words"))
    world.state.mkdir(mode=0o700)
    (world.state / "index.db").touch(mode=0o600)
    world.run("sessiond", "sync", check=0)
    assert world.found("words") == ["words"]


def test_readers_report_a_missing_index(world):
    """Without a sync there is nothing to read: exit 4 with a hint, and no file is created."""
    done = world.run("sess", "sql", "--no-sync", "SELECT 1")
    assert done.returncode == Exit.INDEX_UNUSABLE
    assert done.stderr.splitlines() == [
        f'sess: no index at "{world.state}/index.db" yet',
        "hint: run `sessiond sync`",
    ]
    assert not (world.state / "index.db").exists()


def test_an_older_index_is_not_read_but_upgraded_by_the_writer(world, index):
    """An index at version 0: readers point to the writer."""
    with closing(page_sums.opened(str(index))) as db:
        db.pragma("user_version", 0)
    with pytest.raises(SessError) as told:
        open_reader(index)
    assert told.value.message == f'index "{index}" has schema 0; this sess needs {latest()}'
    assert "sessiond sync" in must(told.value.hint)


def test_a_copy_in_a_read_only_directory_can_be_searched(world, index, plain_user):
    """No -shm can be created there; the reader works without it and writes nothing."""
    world.run("sessiond", "sync", check=0)
    os.chmod(index, 0o400)
    os.chmod(world.state, 0o500)
    names = sorted(os.listdir(world.state))
    done = world.run("sess", "search", "--no-sync", "--json", "more", preexec_fn=plain_user)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    assert sorted(os.listdir(world.state)) == names


def test_a_reader_says_so_when_it_may_not_read(world, index, plain_user):
    """An index of mode 000: one line, a hint, exit 4."""
    os.chmod(index, 0)
    for program, *arguments in COMMANDS:
        done = world.run(program, *arguments, preexec_fn=plain_user)
        assert done.returncode == Exit.INDEX_UNUSABLE, done
        assert str(index) in done.stderr.splitlines()[0]
        assert done.stderr.splitlines()[1].startswith("hint: ")
