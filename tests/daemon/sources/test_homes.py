"""Every agent's golden home: read right, however it grows, whatever is broken, and never written.

A source needs nothing but its folder `tests/golden/AGENT`: see `tests/golden_home.py`.
`SESSIOND_REGOLD=1 pytest ...` writes `facts.json` again: check each number by hand.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
from contextlib import ExitStack, closing
from typing import Any

import apsw
import orjson
import pytest
from tests import golden_damage as damage
from tests.at_length import AT_LENGTH
from tests.golden_home import (
    GOLDEN,
    SECRET,
    GoldenWorld,
    Part,
    agents,
    clean,
    database,
    expected,
    facts,
)

from sess_schema import archive
from sess_schema.connection import open_reader
from sess_schema.session import Reader
from sessiond.reading.territory import recognised
from sessiond.sources import source_classes

STAGES = 6  # in which each file grows
MOST_ROUNDS = 14  # of growth, if files grow one after the other
# Made from one another, and alike in some files: whoever imports one must say which it is.
ALIKE = {"omp": {"omp", "pi"}, "opencode": {"opencode", "kilo"}, "kilo": {"opencode", "kilo"}}

every_agent = pytest.mark.parametrize("agent", agents())


def test_every_agent_has_a_golden_home():
    """A source without hand-checked expectations is a guess."""
    assert sorted({made.agent for made in source_classes()} - {*agents()}) == []


@every_agent
def test_a_clean_read_gives_the_facts(tmp_path, agent):
    """Sessions, events, calls, failures, tokens, projects, times, titles, and parents."""
    world = clean(tmp_path, agent)
    found = facts(world) | ({"skipped": world.skipped} if world.skipped else {})
    facts_file = GOLDEN / agent / "facts.json"
    if os.environ.get("SESSIOND_REGOLD"):
        kept = {"roots": roots} if (roots := expected(agent).get("roots")) else {}
        facts_file.write_text(json.dumps(kept | found, ensure_ascii=False, indent=1) + "\n")
    told = json.loads(facts_file.read_text("utf-8"))
    told.pop("roots", None)
    assert found == told
    assert found["sessions"]
    assert again(world) == 0
    world.check()


@every_agent
def test_a_call_shows_the_input_that_was_indexed(tmp_path, agent):
    """However many records a call is written in, what is found by its words is shown.

    Edits are left out, which are shown as diffs, and agents, whose prompts are their sessions'.
    """
    world = clean(tmp_path, agent)
    with closing(open_reader(world.state / "index.db")) as db:
        sessions: list[Any] = db.execute("SELECT id FROM sessions").fetchall()
        for reader in (Reader(db, session) for (session,) in sessions):
            for entry in reader.entries():
                if entry.type == "tool_use" and entry.kind not in ("edit", "agent"):
                    given = orjson.dumps(reader.input(entry)).decode()
                    shown = re.findall(r"\w+", re.sub(r"\\[nrt]", " ", given))
                    assert {*re.findall(r"\w+", entry.input)} <= {*shown}, entry


def again(world):
    """How many records one more pass reads."""
    return world.ingest().records


@every_agent
def test_no_other_agent_takes_its_files(tmp_path, agent):
    """Judged by their content alone, they are of this agent or of none."""
    world = GoldenWorld(tmp_path, agent)
    world.lay_all()
    for part in world.parts:
        if world.kind(part) in ("transcript", "document", "database"):
            path = str(world.file(part)).removesuffix(".zst")
            found = {source.agent for source, _ in recognised(world.sources, path)}
            assert found <= ALIKE.get(agent, {agent}), part.path


# -- growth


ORDERS = ("in turn", "backwards", "at once")
GROWTH = [
    (agent, order)
    for number, agent in enumerate(agents())
    for order in (ORDERS if AT_LENGTH else ORDERS[number % 3 : number % 3 + 1])
]


@pytest.mark.parametrize(("agent", "order"), GROWTH)
def test_growth_ends_in_what_a_clean_read_gives(tmp_path, agent, order):
    """Logs in torn pieces, documents with more and more records, databases by statement."""
    whole = clean(tmp_path, agent).dump()
    world = GoldenWorld(tmp_path, agent, "grown")
    with ExitStack() as open_databases:
        writes = [list(stages(world, part, open_databases)) for part in world.parts]
        if order == "backwards":
            writes.reverse()
        if order == "at once":
            longest = max(map(len, writes))
            rounds = [[of[at] for of in writes if at < len(of)] for at in range(longest)]
            shuffle = random.Random(agent)
            for together in rounds:
                shuffle.shuffle(together)
        else:
            every = [write for of in writes for write in of]
            size = -(-len(every) // MOST_ROUNDS)
            rounds = [every[at : at + size] for at in range(0, len(every), size)]
        for together in rounds:
            for write in together:
                write()
            world.ingest(settle=False)
    world.ingest()
    assert world.dump() == whole


def stages(world: GoldenWorld, part: Part, open_databases: ExitStack):
    """Functions that each write a little more of a file."""
    if part.is_database:
        yield from grow_database(world, part, open_databases)
    elif part.data and world.kind(part) == "transcript" and not part.path.endswith(".zst"):
        cuts = torn(part)
        for start, end in zip([0, *cuts], [*cuts, len(part.data)], strict=True):
            yield lambda start=start, end=end: append(world, part, part.data[start:end])
    elif world.kind(part) == "document":
        for number, data in enumerate([*prefixes(part.data), part.data]):
            yield lambda data=data, number=number: rewrite(world, part, data, number)
    else:
        yield lambda: world.lay(part)


def torn(part: Part):
    """Places to stop at: ends of lines, and inside of them."""
    ends = [at + 1 for at, byte in enumerate(part.data[:-1]) if byte == 10]
    chance = random.Random(part.path)
    inside = [chance.randrange(len(part.data)) for _ in range(STAGES // 2)]
    chosen = chance.sample(ends, min(len(ends), STAGES // 2))
    return sorted({*inside, *chosen})


def append(world, part, data):
    path = world.file(part)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def rewrite(world, part, data, number):
    """In place, or by a rename, as agents do."""
    if number % 2:
        beside = world.file(part).with_name(".writing")
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(data)
        beside.rename(world.file(part))
    else:
        world.lay(part, data)


def prefixes(data: bytes):
    """A document with the first records of its longest list, or the first lines of its text."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        lines = data.splitlines(keepends=True)
        for at in range(1, STAGES):
            yield b"".join(lines[: len(lines) * at // STAGES])
        return
    lists = [(path, one) for path, one in everything(value) if isinstance(one, list)]
    path, longest = max(lists, key=lambda one: len(one[1]), default=((), []))
    for length in sorted({len(longest) * at // STAGES for at in range(STAGES)}):
        short = longest[:length]
        yield orjson.dumps(damage.replaced(data, path, short) if path else short)


def everything(value):
    yield (), value
    for path, _ in damage.paths(value):
        inner = value
        for key in path:
            inner = inner[key]
        yield path, inner


def grow_database(world, part, open_databases):
    opened_one: list[apsw.Connection] = []

    def write(statements):
        if not opened_one:
            db = database(world.file(part))
            open_databases.callback(db.close)
            opened_one.append(db)
        for statement in statements:
            opened_one[0].execute(statement)

    made = 1 + max(
        (at for at, one in enumerate(part.statements) if "CREATE" in one.upper()), default=-1
    )
    yield lambda: write(part.statements[:made])
    rest = part.statements[made:]
    step = max(1, len(rest) // (2 * STAGES))
    for at in range(0, len(rest), step):
        yield lambda at=at: write(rest[at : at + step])


# -- foreign data is only read


@every_agent
def test_nothing_is_written_and_no_secret_is_kept(tmp_path, agent, caplog):
    """The home is byte for byte the same, while writers hold their databases and after them."""
    caplog.set_level(logging.DEBUG)
    world = GoldenWorld(tmp_path, agent)
    with ExitStack() as open_databases:
        for part in world.parts:
            if part.is_database:
                for write in grow_database(world, part, open_databases):
                    write()
            else:
                world.lay(part)
        before = snapshot(world)
        world.ingest()
        assert snapshot(world) == before
    before = snapshot(world)
    world.ingest()
    assert snapshot(world) == before
    assert SECRET not in caplog.text
    assert [*places_with(world, SECRET.encode())] == []


def snapshot(world):
    """All names and bytes; of the memory that SQLite shares between readers, only the name."""
    return {
        str(path): path.read_bytes() if path.is_file() and path.name[-4:] != "-shm" else None
        for path in sorted(world.root.rglob("*"))
    }


def places_with(world, words):
    for path in world.state.rglob("*"):
        if path.is_file() and words in path.read_bytes():
            yield path.name
    with closing(open_reader(world.state / "index.db")) as db:
        for (packed,) in db.execute("SELECT data FROM chunks"):
            if words in archive.unpack(packed):
                yield "the archive"
