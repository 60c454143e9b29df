"""What a file contained before it was rewritten comes out of a damaged index as rows, too."""

from __future__ import annotations

import json
import shutil
from contextlib import closing

from tests.golden_home import GoldenWorld

from sess_schema.connection import open_writer

SPENT = "SELECT sum(input_tokens), sum(output_tokens), count(*) FROM usage"
LEFT = "SELECT native_id, retired, line FROM records WHERE retired > 0 ORDER BY retired, line, id"


def move_aside(world):
    """The index becomes a file to salvage; the next one is new."""
    aside = world.root / "aside.db"
    shutil.copy(world.state / "index.db", aside)
    shutil.rmtree(world.state)
    world.state.mkdir(mode=0o700)
    return aside


def rewritten(world):
    """A log that was rewritten twice: some records return, some left for good."""
    t = world.transcript()
    lines = [
        t.encode(record)
        for record in (
            t.prompt("first question"),
            t.answer("first answer", output_tokens=100),
            t.prompt("second question"),
            t.answer("second answer", output_tokens=1000),
        )
    ]
    for content in (lines, lines[:2], [lines[0], *lines[2:]]):
        t.path.write_bytes(b"".join(content))
        world.ingest()
    return t


def test_tokens_of_earlier_generations_are_counted_again(world):
    """The salvaged index is what it was: tokens, records that left, what is shown and found."""
    t = rewritten(world)
    t.path.unlink()
    world.ingest()
    before, spent, left = world.dump(), world.sql(SPENT), world.sql(LEFT)
    assert spent[0][1:] == (1100, 2)
    aside = move_aside(world)
    world.run("sessiond", "salvage", aside, check=0)
    assert world.sql(SPENT) == spent
    assert world.sql(LEFT) == left
    assert world.dump() == before
    world.check()


def test_the_same_when_the_file_was_read_again_before(world):
    """Into an index that has only the last content; a second time changes nothing."""
    rewritten(world)
    spent = world.sql(SPENT)
    aside = move_aside(world)
    world.ingest()
    assert world.sql(SPENT) != spent
    for _ in range(2):
        world.run("sessiond", "salvage", aside, check=0)
        assert world.sql(SPENT) == spent
        assert world.found("second") == world.found("second")
        world.check()
    assert world.run("sess", "check").returncode == 0


def test_records_that_left_a_conversation_are_read_again(tmp_path):
    """Of documents whose files are gone; what repeats a better source stays hidden."""
    world = GoldenWorld(tmp_path, "cline")
    for part in world.parts:
        world.lay(part)
    world.ingest()
    for path in world.root.rglob("*.json"):
        records = json.loads(path.read_text("utf-8"))
        if isinstance(records, list):
            path.write_text(json.dumps(records[:1]), "utf-8")
    world.ingest()
    left = (
        "SELECT s.path, t.retired, count(*) FROM records t JOIN sources s ON s.id = t.source_id"
        " JOIN chunks c ON c.source_id = s.id AND c.retired = t.retired AND c.offset = t.offset"
        " WHERE t.retired > 0 GROUP BY 1, 2 ORDER BY 1, 2"
    )
    hidden = "SELECT path FROM sources WHERE kind = 'mirror' ORDER BY 1"
    before = [world.sql(left), world.sql(hidden)]
    assert [len(rows) for rows in before] == [3, 1]
    shutil.rmtree(world.root)
    world.root.mkdir()
    aside = move_aside(world)
    done = world.run("sessiond", "salvage", aside, check=5)
    assert "titles, calls and costs" in done.stderr
    assert [world.sql(left), world.sql(hidden)] == before
    world.check()


def test_a_content_of_which_nothing_is_left_is_named(world):
    """The file is known to have had it."""
    rewritten(world)
    with closing(open_writer(world.state / "index.db")) as db:
        db.execute("DELETE FROM chunks WHERE retired = 2")
    done = world.run("sessiond", "salvage", move_aside(world), check=5)
    assert "all of generation 1\n" in done.stderr
    assert "generation 2" not in done.stderr
