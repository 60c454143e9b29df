"""An index from before the first release: recognised, left alone, and copied on request."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest
import zstandard
from tests.conftest import World
from tests.cursor_databases import user_directory
from tests.schema import corpus

from sess_common.errors import Exit
from sess_schema.connection import open_writer
from sess_schema.migrate import PreRelease
from sessiond.salvage import pre_release

STORED = Path(__file__).with_name("pre_release.db.zst")  # of one log and one chat of a database
HOME = "/home/kim"
COMMANDS = [
    ("sess", "list"),
    ("sess", "list", "--no-sync"),
    ("sess", "search", "steam"),
    ("sess", "show", "steam"),
    ("sess", "stats", "--no-sync"),
    ("sess", "check"),
    ("sess", "sql", "SELECT 1"),
    ("sessiond", "sync"),
    ("sessiond", "start"),
    ("sessiond", "status"),
    ("sessiond", "repair"),
]


@pytest.fixture
def index(world):
    """Its files are gone."""
    return unpack(world)


def unpack(world):
    world.state.mkdir(mode=0o700)
    index = world.state / "index.db"
    index.write_bytes(zstandard.decompress(STORED.read_bytes()))
    index.chmod(0o600)
    cursor = str(user_directory(world.root.resolve()))
    with closing(apsw.Connection(str(index))) as db:
        db.pragma("journal_mode", "wal")
        places = ((f"{HOME}/.config/Cursor/User", cursor), (HOME, str(world.root.resolve())))
        for old, new in places:
            db.execute("UPDATE sources SET path = replace(path, ?, ?)", (old, new))
    return index


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """What today's program makes of the files that the stored index was made from, now gone."""
    world = World(tmp_path_factory.mktemp("fresh"))
    write_files(world)
    world.run("sessiond", "sync", check=0)
    remove_files(world)
    world.run("sessiond", "sync", check=0)
    return world


def write_files(world):
    corpus.write(world.root)
    shutil.rmtree(world.projects / "-code-teapot")


def remove_files(world):
    shutil.rmtree(world.projects)
    world.projects.mkdir()
    shutil.rmtree(user_directory(world.root))


def told(world):
    """What the index says, and what the views show, whatever the rows' numbers and where it is."""
    views = [
        ("list", "--all", "-n", "0"), ("show", corpus.OTHER), ("show", "steam"), ("stats",),
        ("stats", "tools"), ("stats", "files"), ("search", "steam", "--explain"),
    ]  # fmt: skip
    shown = [world.run("sess", *view, "--no-sync", check=0).stdout for view in views]
    root = str(world.root.resolve())
    rows = {name: rows for name, rows in world.dump().items() if name != "sources"}
    return rows, [text.replace(root, "~").replace(str(world.root), "~") for text in shown]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_says_how_to_go_on(world, index, command):
    """One line, one hint, exit 4; no byte of it changes, nor of its log."""
    paths = (index, index.with_name("index.db-wal"))
    with closing(apsw.Connection(str(index))) as db:
        db.execute("UPDATE sessions SET title = 'Late' WHERE native_id = 'steam'")
        files = {path: path.read_bytes() for path in paths}
    for path, content in files.items():  # as a process leaves them that was killed
        path.write_bytes(content)
    assert all(files.values())
    done = world.run(*command)
    assert done.returncode == Exit.INDEX_UNUSABLE
    assert done.stderr.splitlines()[-2:] == [
        f'{command[0]}: index "{index}" was made before the first release'
        if command[0] == "sessiond" or "--no-sync" in command or command[1] == "check"
        else f'sessiond: index "{index}" was made before the first release',
        f"hint: `sessiond salvage {index}` loads its archive into a new index",
    ]
    assert {path: path.read_bytes() for path in files} == files


def test_it_is_copied_whole_and_kept(world, index, fresh):
    """All views are those of a fresh load, although the files are gone."""
    before = index.read_bytes()
    done = world.run("sessiond", "salvage", index, check=0)
    (kept,) = world.state.glob("pre-release-*")
    assert done.stderr.splitlines() == [
        f'the index is from before the first release; it is kept in "{kept}"',
        "copied 2 sessions",
    ]
    assert (kept / "index.db").read_bytes() == before
    assert told(world) == told(fresh)
    world.run("sess", "check", check=0)
    world.check()


def test_what_has_another_name_today_is_copied_too(world, index):
    """A column that it lacked would mark every log to be read again."""
    with closing(open_writer(world.root / "new.db")) as new:
        assert pre_release.copy(new, str(index)) == 2
        unread = "SELECT count(*) FROM sources WHERE edition = 0 AND part_of IS NULL"
        pairs = [
            ("SELECT * FROM turns ORDER BY id", "SELECT * FROM records ORDER BY id"),
            ("SELECT id, turns FROM sessions", "SELECT id, records FROM sessions"),
            (
                "SELECT id, turn_id, result_turn_id FROM events",
                "SELECT id, record_id, result_record_id FROM events",
            ),
            ("SELECT id, turn_id FROM usage", "SELECT id, record_id FROM usage"),
            ("SELECT key, turn_id FROM database_rows", "SELECT key, record_id FROM database_rows"),
        ]
        with closing(apsw.Connection(str(index))) as old:
            assert new.execute(unread).get == old.execute(unread).get
            for then, today in pairs:
                rows = old.execute(then).fetchall()
                assert rows
                assert new.execute(today).fetchall() == rows


def test_it_may_lie_elsewhere_and_the_files_may_still_exist(world, index, fresh):
    """Then nothing is read twice, and the file stays where it is."""
    old = index.rename(world.root / "old.db")
    before = old.read_bytes()
    write_files(world)
    for _ in range(2):
        world.run("sessiond", "salvage", old, check=0)
    remove_files(world)
    world.run("sessiond", "sync", check=0)
    assert told(world) == told(fresh)
    assert old.read_bytes() == before


def test_a_damaged_one_gives_its_archive(world, index):
    """As any damaged index does."""
    with closing(apsw.Connection(str(index))) as db:
        page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'events_by_time'").get
        size = db.pragma("page_size")
    raw = bytearray(index.read_bytes())
    raw[(page - 1) * size : page * size] = bytes(size)
    index.write_bytes(raw)
    done = world.run("sessiond", "salvage", index, check=5)
    assert "loaded 2 files" in done.stderr
    assert world.sql("SELECT count(*) FROM sessions") == [(2,)]
    world.check()


def test_one_that_was_interrupted_is_finished(world, index, fresh):
    """Killed while the new one was built: the same command, or a repair, goes on."""
    kept = world.state / "pre-release-1"
    kept.mkdir(mode=0o700)
    shutil.copy(index, kept / "index.db")
    (world.state / "repairing").write_text(str(kept / "index.db"))
    (world.state / "index.db.new").write_bytes(b"half")
    world.run("sessiond", "salvage", index, check=0)
    assert told(world) == told(fresh)
    assert [path.name for path in world.state.glob("pre-release-*")] == [kept.name]


def test_the_writer_refuses_it(index):
    with pytest.raises(PreRelease):
        open_writer(index)
