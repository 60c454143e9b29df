"""The pieces of the archive while a file grows line by line."""

from __future__ import annotations

from contextlib import closing

from sess_schema import archive
from sess_schema.connection import open_reader
from sessiond.writing.record_rows import SMALL_CHUNK, TAIL_CHUNK


def test_small_pieces_that_are_joined_have_the_bytes_of_the_file(world):
    """With the file gone nothing else would tell."""
    t = world.transcript()
    while not t.path.exists() or t.path.stat().st_size < 2 * SMALL_CHUNK:
        t.append(t.prompt(f"{t.count} " + "words " * 400))
        world.ingest()
    raw = t.path.read_bytes()
    lengths = [length for (length,) in world.sql("SELECT length FROM chunks ORDER BY offset")]
    assert len(lengths) < len(raw) // TAIL_CHUNK, "nothing was joined"
    assert max(lengths) >= SMALL_CHUNK
    t.path.unlink()
    world.ingest()
    assert world.restored(t.path) == raw
    world.run("sess", "check", check=0)


def test_what_a_reader_has_listed_can_be_read_whatever_became_of_it(world):
    """Pieces grow, are joined and finished between the listing and the reading."""
    t = world.transcript()
    places = "SELECT source_id, retired, offset, length FROM records WHERE retired = 0"
    with closing(open_reader_of(world)) as db:
        reader = archive.RecordReader(db)
        listed: dict[archive.Chunk, bytes] = {}
        while t.path.stat().st_size < 2 * SMALL_CHUNK:
            t.append(t.prompt(f"{t.count} " + "words " * 400))
            if t.count % 7 == 0:  # as an agent that is in the middle of a line
                t.append(b'{"type":"user"')
                world.ingest(settle=True)
                with t.path.open("ab") as file:
                    file.write(b"}\n")
            world.ingest()
            raw = t.path.read_bytes()
            for source, *_ in db.execute("SELECT id FROM sources").fetchall():
                for chunk in archive.current(db, source):
                    listed[chunk] = raw[chunk.offset : chunk.end]
            for place in db.execute(places).fetchall():
                assert reader.bytes_of(place) == raw[place[2] : place[2] + place[3]]
        for chunk, expected in listed.items():
            assert archive.chunk_bytes(db, chunk) == expected
        assert archive.met == []


def open_reader_of(world):
    t = world.transcript()
    t.append(t.prompt("go"))
    world.ingest()
    return open_reader(world.state / "index.db")
