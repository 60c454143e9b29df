"""An index of an earlier version becomes one of today, whole or not at all."""

from __future__ import annotations

import os
import pty
import shutil
import socket
import subprocess
import sys
from contextlib import closing

import apsw
import pytest
from tests.schema import corpus
from tests.schema.upgrading import LATER, later
from tests.waiting import LIMIT

from sess_common.errors import Exit, SessError
from sess_schema import migrate, sums
from sess_schema.connection import open_reader, open_writer

SESSIOND = (sys.executable, "-m", "tests.schema.upgrading")


@pytest.fixture
def index(world):
    """One that today's program made."""
    corpus.write(world.root)
    world.run("sessiond", "sync", check=0)
    return world.state / "index.db"


def contents(index):
    """Every row of every table that can be read without FTS5's own."""
    with closing(apsw.Connection(str(index))) as db:
        names = db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
        ).fetchall()
        rows = {name: list(db.execute(f"SELECT * FROM {name}")) for (name,) in names}
        return rows | {"user_version": db.pragma("user_version")}


def test_an_upgrade_changes_rows_and_what_derives_from_them(world, index):
    """SQL and the code beside it were applied, sums follow, and each migration is recorded once."""
    before = contents(index)
    with later():
        for _ in range(2):
            with closing(open_writer(index)) as db:
                assert not any(sums.differences(db).values())
        world.check()
        after = contents(index)
        found = world.sql("SELECT count(*) FROM event_index WHERE event_index MATCH 'steeping'")
    assert found != [(0,)]
    assert after["user_version"] == 9002
    assert [name for _, name, _ in after["migrations"]] == [
        *(name for _, name, _ in before["migrations"]), "9001_words", "9002_dates",
    ]  # fmt: skip
    assert len(after["words"]) == len(before["event_texts"]) == len(after["event_texts"])
    assert sum(session[-1] for session in after["sessions"]) == sum(
        count for _, count in after["words"]
    )
    shifted = [
        (quarter + 4 if quarter >= 0 else quarter, *more) for quarter, *more in before["spans"]
    ]
    assert sorted(row[:2] for row in after["spans"]) == sorted(row[:2] for row in shifted)


def test_an_upgrade_that_fails_leaves_the_index_as_it_was(index, tmp_path):
    """An error in the last migration takes the ones before it back, too."""
    before = contents(index)
    folder = tmp_path / "broken"
    shutil.copytree(LATER, folder)
    (folder / "9003_broken.sql").write_text("CREATE TABLE more (x); SELECT * FROM nowhere;")
    with later(folder), pytest.raises(Exception, match="no such table: nowhere"):
        open_writer(index)
    assert contents(index) == before
    with later():
        open_writer(index).close()
    assert contents(index)["user_version"] == 9002


def test_an_upgrade_keeps_a_copy_of_what_was_there(index):
    """The index of the older schema stands beside the new one."""
    before = contents(index)
    with later():
        open_writer(index).close()
    kept = index.with_name(f"index-schema{migrate.latest()}.db")
    assert contents(kept) == before
    with closing(open_reader(kept)) as db:
        assert db.pragma("integrity_check") == "ok"


def test_a_reader_points_to_the_writer(world, index):
    """It cannot upgrade."""
    with later(), pytest.raises(SessError) as told:
        open_reader(index)
    assert (
        told.value.message == f'index "{index}" has schema {migrate.latest()}; this sess needs 9002'
    )
    assert "sessiond sync" in (told.value.hint or "")
    assert told.value.code == Exit.INDEX_UNUSABLE


def test_each_step_is_reported_and_a_new_index_needs_none(tmp_path):
    """Each is named, again and again while its statements run; code beside it counts."""
    said: list[str] = []
    path = tmp_path / "index.db"
    open_writer(path, said.append).close()
    assert said == []
    folder = tmp_path / "later"
    folder.mkdir()
    counting = (
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)"
        " SELECT count(*) FROM n"
    )
    (folder / "9998_slow.sql").write_text(counting)
    (folder / "9999_code.sql").write_text("CREATE TABLE made (x)")
    (folder / "9999_code.py").write_text(
        "def apply(db, progress):\n    progress(1, 2000)\n    db.execute('DROP TABLE made')\n"
    )
    with later(folder):
        open_writer(path, said.append).close()
    slow, code = "upgrading the index (9998_slow)", "upgrading the index (9999_code)"
    assert said[:2] == [slow, slow]
    assert said[-2:] == [code, f"{code}: 1 of 2,000"]
    db = apsw.Connection(str(path))
    assert db.pragma("user_version") == 9999
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'made'").get == 0
    db.close()


def test_a_person_sees_the_upgrade_and_then_the_result(world, index):
    """On a terminal the step is one line that is wiped out again; in a pipe there is nothing."""
    kept = index.read_bytes()
    quiet = subprocess.run([*SESSIOND, "sync"], env=world.env, capture_output=True, check=True)
    assert quiet.stderr == b""
    for path in world.state.glob("index*"):
        path.unlink()
    index.write_bytes(kept)
    index.chmod(0o600)
    outer, inner = pty.openpty()
    subprocess.run(
        [*SESSIOND, "sync"], env=world.env, stdout=subprocess.DEVNULL, stderr=inner, check=True
    )
    os.close(inner)
    drawn = os.read(outer, 65536).decode()
    os.close(outer)
    assert drawn.startswith("\r\x1b[Kupgrading the index (9001_words)")
    assert drawn.endswith("\r\x1b[K")


def test_the_service_manager_hears_of_an_upgrade_before_it_is_ready(world, index):
    """The start may take as long as it takes: the manager is asked for more time."""
    heard: list[list[str]] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        address = world.root / "notify"
        manager.bind(str(address))
        manager.settimeout(30)
        process = subprocess.Popen(
            [*SESSIOND, "start"], env={**world.env, "NOTIFY_SOCKET": str(address)}
        )
        try:
            while not heard or "READY=1" not in heard[-1]:
                heard.append(manager.recv(4096).decode().split("\n"))
        finally:
            process.terminate()
            process.wait(LIMIT)
    assert heard[0] == [
        "EXTEND_TIMEOUT_USEC=120000000",
        "WATCHDOG=1",
        "STATUS=upgrading the index (9001_words)",
    ]
