"""`sess check` as a program: what it looks at, and that it finds every kind of damage."""

from __future__ import annotations

from contextlib import closing

import pytest

from sess_schema import page_sums

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def checked(world):
    t = world.transcript(MAIN)
    t.append(t.prompt("hello"), t.call("c1", command="make tea"), t.result("c1", "done"))
    world.ingest()
    return t


def check(world, *more, code=0):
    return world.run("sess", "check", *more, check=code).stdout


def change(world, sql, *values):
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        db.execute(sql, values)


def test_a_sound_index_passes(world, checked):
    """Four lines, and the note of the check for others to show."""
    assert check(world) == (
        "ok    pages       intact\n"
        "ok    archive     1 piece, 1.0 kB read, 1 unchanged file compared\n"
        "ok    rows        references and sums\n"
        "ok    full text   compared with the texts\n"
    )
    assert '"ok": true' in (world.state / "upkeep.json").read_text()


def test_damaged_bytes_are_named(world, checked):
    """Source and byte range of each damaged piece."""
    ((packed,),) = world.sql("SELECT data FROM chunks")
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 4
    change(world, "UPDATE chunks SET data = ?", bytes(damaged))
    size = checked.path.stat().st_size
    said = check(world, code=4)
    assert f"{checked.path}: bytes 0 to {size:,} are damaged\n" in said
    assert said.endswith("hint: `sessiond repair` mends what can be mended and names the rest\n")
    assert '"ok": false' in (world.state / "upkeep.json").read_text()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM chunks", "are missing"),
        ("UPDATE chunks SET offset = 5", "bytes 0 to 5 are missing"),
        (
            (
                "INSERT INTO chunks (source_id, retired, offset, length, data)"
                " SELECT source_id, retired, 3, length, data FROM chunks"
            ),
            "are archived twice",
        ),
        ("DELETE FROM events WHERE type = 'user'", "1 of event_texts.id are not in events"),
        ("UPDATE event_sums SET calls = 7 WHERE calls", "1 row of event_sums not what"),
        ("UPDATE usage_sums SET requests = 7", "1 row of usage_sums not what"),
        ("UPDATE spans SET active_ms = 7", "1 row of spans not what"),
        ("UPDATE event_texts SET text = 'other' WHERE text <> ''", "does not match the texts"),
    ],
)
def test_everything_derived_is_compared(world, checked, sql, said):
    """A missing, doubled, dangling or wrongly summed row is found."""
    with closing(page_sums.opened(str(world.state / "index.db"))) as db:
        for (trigger,) in list(db.execute("SELECT name FROM sqlite_schema WHERE type='trigger'")):
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute(sql)
    assert said in check(world, code=4)


def test_a_file_that_only_looks_unchanged_is_found(world, checked):
    """The bytes of files whose stat is the archived one are compared."""
    checked.path.write_bytes(checked.path.read_bytes().replace(b"make tea", b"make tee"))
    found = checked.path.stat()
    columns = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    change(
        world,
        "UPDATE sources SET dev = ?, inode = ?, size = ?, mtime_ns = ?, ctime_ns = ?",
        *columns,
    )
    assert "are not what the file has" in check(world, code=4)


def test_a_share_reads_less(world, checked):
    """--read-data-subset takes a percentage and nothing else."""
    t = world.transcript("22222222-2222-4222-8222-222222222222")
    for number in range(300):  # each ingested line beyond a small chunk would be too slow here
        t.append(t.prompt(f"{number}" * 9000))
    world.ingest()
    ((pieces,),) = world.sql("SELECT count(*) FROM chunks")
    assert pieces > 5
    assert f" of {pieces}, " in check(world, "--read-data-subset", "0.0001%")
    for wrong in ("10", "0%", "101%", "much", "-5%"):
        done = world.run("sess", "check", f"--read-data-subset={wrong}", check=2)
        assert done.stderr == (
            f'sess: "{wrong}" is not a share of the archive\nhint: give a percentage, such as 10%\n'
        )


def test_json_lists_every_problem(world, checked):
    """One object per check."""
    change(world, "DELETE FROM chunks")
    lines = check(world, "--json", code=4).splitlines()
    assert len(lines) == 4
    assert '"check":"archive","ok":false' in lines[1].replace(" ", "")
