"""Every agent's golden home: read right, however it grows, whatever is broken, and never written.

A source needs nothing but its folder `tests/golden/AGENT`: see `tests/golden_home.py`.
`SESSIOND_REGOLD=1 pytest ...` writes `facts.json` again: check each number by hand.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import re
from contextlib import ExitStack, closing

import apsw
import orjson
import pytest
from tests import golden_damage as damage
from tests.conftest import opened
from tests.golden_home import GOLDEN, SECRET, GoldenWorld, Part, agents, database, expected, facts

from sess_schema import archive
from sess_schema.connection import open_reader
from sessiond.engines.foreign import Foreign, ForeignError
from sessiond.engines.known_rows import KnownRows
from sessiond.reading.array_elements import NotAnArray, elements
from sessiond.reading.territory import recognised
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import NotReady
from sessiond.sources import source_classes

STAGES = 6  # in which each file grows
MOST_READS = 60  # of damaged databases
CRASH = re.compile(r"^\w*(Error|Exception|Iteration|Exit)\b|^parser failed")


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


def clean(tmp_path, agent, index="clean"):
    world = GoldenWorld(tmp_path, agent, index)
    world.lay_all()
    summary = world.ingest()
    home = str(world.root)
    world.skipped = sorted([path.replace(home, "{HOME}"), why] for path, why in summary.skipped)
    return world


def again(world):
    """How many records one more pass reads."""
    return world.ingest().turns


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


@every_agent
@pytest.mark.parametrize("order", ["in turn", "backwards", "at once"])
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
            rounds = [[write] for of in writes for write in of]
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


# -- hostile files


@every_agent
def test_damaged_files_crash_nothing(tmp_path, agent):
    """One file at a time is broken in some way: the others are read, and all are restored."""
    world = clean(tmp_path, agent)
    lengths = dict(world.sql(PER_FILE))
    for number, (part, name, data) in enumerate(damages(world)):
        path = world.file(part)
        original = path.read_bytes()
        path.write_bytes(data)
        world.forget(f"damaged-{number}")
        world.ingest()
        path.write_bytes(original)
        sound(world, part, data, name)
        spoilt = str(path).removesuffix(".zst")
        if world.kind(part) == "sidecar":  # says more about another file
            spoilt = world.source.owner(spoilt)
        read = dict(world.sql(PER_FILE))
        others = [
            other
            for other in {*read, *lengths}
            if not other.startswith(spoilt)
            and spoilt not in world.source.sidecars(other.partition("#")[0])
        ]
        assert [read.get(other) for other in others] == [lengths.get(other) for other in others]


PER_FILE = (
    "SELECT s.path, count(t.id) FROM sources s LEFT JOIN turns t ON t.source_id = s.id"
    " WHERE s.state = 'live' GROUP BY s.id"
)


def damages(world):
    """Every damage of each kind of file, the files of a kind in turn."""
    for kind in ("transcript", "document", "database", "sidecar", "attachment"):
        parts = [part for part in world.parts if world.kind(part) == kind]
        files = itertools.cycle(parts) if parts else ()
        for name, part in zip(damage.NAMES, files, strict=False):
            if name in damage.CHANGES and (kind == "database" or part.path.endswith(".zst")):
                continue
            yield part, name, damage.damaged(name, world.file(part).read_bytes(), kind)


def sound(world, part, data, name):
    """No crash was noted, and every file that was read can be restored."""
    noted = world.sql(
        "SELECT reason FROM warnings UNION ALL SELECT error FROM sources WHERE error IS NOT NULL"
    )
    assert [reason for (reason,) in noted if CRASH.search(reason)] == [], (part.path, name)
    for path, kind in world.sql(
        "SELECT path, kind FROM sources WHERE part_of IS NULL AND state = 'live'"
    ):
        if kind != "database" and not os.path.exists(path + ".zst"):
            with open(path, "rb") as file:
                written = data if path == str(world.file(part)) else file.read()
            assert world.restored(path) == written, (path, name)


@every_agent
def test_a_wrong_type_in_any_field_is_survived(tmp_path, agent):
    """Each field of each record gets each other type: parsers return only what can be written."""
    world = GoldenWorld(tmp_path, agent)
    world.lay_all()
    for part in world.parts:
        kind = world.kind(part)
        if kind == "transcript" and not part.path.endswith(".zst"):
            spoil_lines(world, part)
        elif kind == "document":
            spoil_document(world, part)
        elif kind == "database":
            spoil_database(world, part)


def spoil_lines(world, part):
    path = str(world.file(part))
    spec = world.source.identify(path, part.data[: 64 << 10])
    parser, seen = world.source.parser(spec, {}), set()
    for line in part.data.splitlines():
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(value, dict):
            continue
        state = json.dumps(parser.state())
        parser.parse(value)
        for place, name in damage.paths(orjson.loads(line)):
            what = (value.get("type"), name)
            if what in seen:
                continue
            seen.add(what)
            for wrong in damage.WRONG:
                other = world.source.parser(spec, json.loads(state))
                for given in (damage.replaced(line, place, wrong), orjson.loads(line)):
                    record = other.parse(given)
                    assert [*damage.misfits(record)] == [], (part.path, name, wrong)
                json.dumps(other.state())
    first = next(iter(part.data.splitlines()), b"")
    for place, name in damage.paths(json.loads(first or b"{}")):
        for wrong in damage.WRONG:
            head = json.dumps(damage.replaced(first, place, wrong)).encode()
            assert [*damage.misfits(world.source.identify(path, head))] == [], (name, wrong)


def spoil_document(world, part):
    path, seen = str(world.file(part)), set()
    try:
        value = orjson.loads(part.data)
    except orjson.JSONDecodeError:
        return
    read = read_document(world, path, part.data)
    sound = {item.key: item.record for conversation in read for item in conversation.items}
    assert [*misfits_of(read)] == []
    for place, name in damage.paths(value):
        if name in seen:
            continue
        seen.add(name)
        for wrong in damage.WRONG:
            data = json.dumps(damage.replaced(part.data, place, wrong)).encode()
            try:
                read = read_document(world, path, data)
            except NotReady:
                continue
            assert [*misfits_of(read, sound)] == [], (part.path, name, wrong)


def read_document(world, path, data):
    read = world.source.documents.conversations
    if not world.source.streams:
        return list(read(path, data))
    try:
        parts = list(elements(lambda length, offset: data[offset : offset + length]))
    except NotAnArray:
        return []
    return [conversation for part in parts for conversation in read(path, part)]


def misfits_of(conversations, sound=None):
    """`sound` are records by key that were looked at before."""
    for conversation in conversations:
        yield from damage.misfits(conversation.spec)
        for item in conversation.items:
            assert isinstance(item.key, str)
            if item.record is not None and item.record != (sound or {}).get(item.key):
                yield from damage.misfits(item.record)


def spoil_database(world, part):
    """Each column and each field of JSON in it, then without each table."""
    path = world.file(part)
    with closing(opened(world.state / "index.db")) as index, closing(database(path)) as db:
        db.pragma("foreign_keys", "OFF")
        tables = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
                " AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
        ]
        spoils = [spoil for table in tables for spoil in spoils_of(db, table)]
        random.Random(part.path).shuffle(spoils)
        for statement, values in spoils[:MOST_READS]:
            db.execute("BEGIN IMMEDIATE")
            try:
                db.execute(statement, values)
                db.execute("COMMIT")
            except (apsw.ConstraintError, apsw.MismatchError):  # such as a key that is no number
                db.execute("ROLLBACK")
                continue
            read_database(world, path, index, (statement, values))
            restore(world, part, db)
        for table in tables:
            db.execute(f'DROP TABLE "{table}"')
            read_database(world, path, index, table)


def spoils_of(db, table):
    columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info('{table}')")]
    for number, column in enumerate(columns):
        wrong = damage.WRONG[number % 9]
        bound = 2**62 if wrong == 10**30 else "\x00" if isinstance(wrong, str) else wrong
        yield f'UPDATE OR IGNORE "{table}" SET "{column}" = ?', (bound,)
        seen = set()
        for rowid, text in list(db.execute(f'SELECT rowid, "{column}" FROM "{table}"')):
            try:
                value = orjson.loads(text)
            except (TypeError, ValueError):
                continue
            for place, name in damage.paths(value) if isinstance(value, dict | list) else ():
                if name not in seen:
                    seen.add(name)
                    wrong = damage.WRONG[len(seen) % len(damage.WRONG)]
                    raw = orjson.dumps(value)
                    given = json.dumps(damage.replaced(raw, place, wrong))
                    yield f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (given, rowid)


def restore(world, part, db):
    """The database as the golden has it, in the same file."""
    kept = world.state / part.path.replace("/", "-")
    if not kept.exists():
        with closing(database(kept)) as made:
            for statement in part.statements:
                made.execute(statement)
    with closing(apsw.Connection(str(kept))) as made, db.backup("main", made, "main") as copy:
        copy.step(-1)


def read_database(world, path, index, about):
    known = KnownRows(index, Tracked(str(path), world.agent, "database"))
    try:
        with Foreign(str(path), live=True) as foreign:
            state: dict = {}
            read = list(world.source.databases.conversations(foreign, known, state))
            json.dumps(state)
    except ForeignError:
        return
    assert [*misfits_of(read)] == [], about


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
