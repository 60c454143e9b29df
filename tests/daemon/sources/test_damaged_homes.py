"""Every agent's golden home, damaged: nothing crashes, other files are read, all are restored.

The damages are a sample, the same each time; with SESSIOND_FAULTS=1 it is twenty times as large.
"""

from __future__ import annotations

import json
import os
import random
import re
from contextlib import closing

import apsw
import orjson
import pytest
from tests import golden_damage as damage
from tests.at_length import amount
from tests.conftest import opened
from tests.golden_home import GoldenWorld, Part, agents, clean, database

from sessiond.engines.documents import NotAnArray, array_elements
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import NotReady, Record
from sessiond.sourcekit.foreign import Foreign, ForeignError, KnownRows

MOST_RECORDS, MOST_DOCUMENTS, MOST_DATABASES = 200, 40, 12  # spoilt, for each agent
MOST_DAMAGES = 8  # of files, for each agent
CRASH = re.compile(r"^\w*(Error|Exception|Iteration|Exit)\b|^parser failed")
PER_FILE = (
    "SELECT s.path, count(t.id) FROM sources s LEFT JOIN records t ON t.source_id = s.id"
    " WHERE s.state = 'live' GROUP BY s.id"
)

every_agent = pytest.mark.parametrize("agent", agents())


@every_agent
def test_damaged_files_crash_nothing(tmp_path, agent):
    """Some files are broken in some way: the others are read, and all are restored."""
    world = clean(tmp_path, agent)
    lengths = dict(world.sql(PER_FILE))
    originals = {part.path: world.file(part).read_bytes() for part in world.parts}
    for number, broken in enumerate(passes(world, originals)):
        for part, _, data in broken:
            world.file(part).write_bytes(data)
        world.forget(f"damaged-{number}")
        world.ingest()
        sound(world, [(part.path, name) for part, name, _ in broken])
        compare(world, [part for part, _, _ in broken], lengths)
        for part, _, _ in broken:
            world.file(part).write_bytes(originals[part.path])


def passes(world, originals):
    """Every damage of each kind of file, several at once, but never all files."""
    waiting = sampled(damages(world, originals), MOST_DAMAGES, world.agent)
    most = max(1, len(world.parts) // 2)
    while waiting:
        broken: dict[str, tuple] = {}
        for task in waiting:
            if len(broken) < most and task[0].path not in broken:
                broken[task[0].path] = task
        yield list(broken.values())
        waiting = [task for task in waiting if task not in broken.values()]


def damages(world, originals):
    for kind in ("transcript", "document", "database", "sidecar", "attachment"):
        parts = [part for part in world.parts if world.kind(part) == kind]
        for number, name in enumerate(damage.NAMES if parts else ()):
            part = parts[number % len(parts)]
            if name in damage.CHANGES and (kind == "database" or part.path.endswith(".zst")):
                continue
            yield part, name, damage.damaged(name, originals[part.path], kind)


def sound(world, broken):
    """No crash was noted, and every file that was read can be restored."""
    noted = world.sql(
        "SELECT reason FROM warnings UNION ALL SELECT error FROM sources WHERE error IS NOT NULL"
    )
    assert [reason for (reason,) in noted if CRASH.search(reason)] == [], broken
    for path, kind in world.sql(
        "SELECT path, kind FROM sources WHERE part_of IS NULL AND state = 'live'"
    ):
        if kind != "database" and not os.path.exists(path + ".zst"):
            with open(path, "rb") as file:
                assert world.restored(path) == file.read(), (path, broken)


def compare(world, broken, lengths):
    """As many records as ever in every file that no damage concerns."""
    read = dict(world.sql(PER_FILE))
    spoilt = [str(world.file(part)).removesuffix(".zst") for part in broken]
    spoilt += [
        world.source.owner(str(world.file(part)))
        for part in broken
        if world.kind(part) == "sidecar"  # says more about another file
    ]
    others = [
        other
        for other in {*read, *lengths}
        if not other.startswith(tuple(spoilt))
        and set(spoilt).isdisjoint(world.source.sidecars(other.partition("#")[0]))
    ]
    assert [read.get(other) for other in others] == [lengths.get(other) for other in others]


@every_agent
def test_a_wrong_type_in_any_field_is_survived(tmp_path, agent):
    """Each field of each record gets another type: parsers return only what can be written."""
    world = GoldenWorld(tmp_path, agent)
    world.lay_all()
    by_kind: dict[str, list[Part]] = {"transcript": [], "document": [], "database": []}
    for part in world.parts:
        kind = world.kind(part)
        if kind in by_kind and not part.path.endswith(".zst"):
            by_kind[kind].append(part)
    spoil_records(world, by_kind["transcript"])
    spoil_documents(world, by_kind["document"])
    for part in by_kind["database"]:
        spoil_database(world, part, MOST_DATABASES // len(by_kind["database"]) + 1)


def sampled(tasks, most, seed):
    tasks = list(tasks)
    most = amount(most, 20 * most)
    if len(tasks) <= most:
        return tasks
    return random.Random(seed).sample(tasks, most)


def fields(value, seen, kind):
    """Places in a value, one of each name."""
    for place, name in damage.paths(value):
        if (kind, name) not in seen:
            seen.add((kind, name))
            yield place, name


def spoil_records(world, parts):
    tasks = [task for part in parts for task in records_to_spoil(world, part)]
    for spec, line, state, place, name, wrong in sampled(tasks, MOST_RECORDS, world.agent):
        parser = world.source.parser(spec, json.loads(state))
        for given in (damage.replaced(line, place, wrong), orjson.loads(line)):
            assert [*damage.misfits(parser.parse(given))] == [], (line, name, wrong)
        json.dumps(parser.state())
    for part in parts:
        spoil_head(world, part)


def records_to_spoil(world, part):
    spec = world.source.identify(str(world.file(part)), part.data[: 64 << 10])
    parser = world.source.parser(spec, {})
    seen: set[tuple[object, str]] = set()
    for line in part.data.splitlines():
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(value, dict):
            continue
        state = json.dumps(parser.state())
        parser.parse(value)
        for place, name in fields(orjson.loads(line), seen, value.get("type")):
            for wrong in damage.WRONG:
                yield spec, line, state, place, name, wrong


def spoil_head(world, part):
    first = next(iter(part.data.splitlines()), b"") or b"{}"
    tasks = [
        (place, wrong) for place, _ in damage.paths(json.loads(first)) for wrong in damage.WRONG
    ]
    for place, wrong in sampled(tasks, MOST_DOCUMENTS, part.path):
        head = json.dumps(damage.replaced(first, place, wrong)).encode()
        spec = world.source.identify(str(world.file(part)), head)
        assert [*damage.misfits(spec)] == [], (part.path, place, wrong)


def spoil_documents(world, parts):
    tasks = [task for part in parts for task in documents_to_spoil(part)]
    sound: dict[str, Record | None] = {}
    for part in parts:
        read = read_document(world, part, part.data)
        assert [*misfits_of(read)] == []
        sound |= {item.key: item.record for one in read for item in one.items}
    tried, unready = sampled(tasks, MOST_DOCUMENTS, world.agent), 0
    for part, place, name, wrong in tried:
        data = json.dumps(damage.replaced(part.data, place, wrong)).encode()
        world.file(part).write_bytes(data)  # some agents look whether it is still what was read
        try:
            read = read_document(world, part, data)
        except NotReady:
            unready += 1
            continue
        finally:
            world.lay(part)
        assert [*misfits_of(read, sound)] == [], (part.path, name, wrong)
    assert unready <= len(tried) / 2, "what is not ready was not looked at"


def documents_to_spoil(part):
    try:
        value = orjson.loads(part.data)
    except orjson.JSONDecodeError:
        return
    for place, name in fields(value, set(), None):
        for wrong in damage.WRONG:
            yield part, place, name, wrong


def read_document(world, part, data):
    path, read = str(world.file(part)), world.source.documents.conversations
    if not world.source.streams:
        return list(read(path, data))
    try:
        parts = list(array_elements(lambda length, offset: data[offset : offset + length]))
    except NotAnArray:
        return []
    return [conversation for one in parts for conversation in read(path, one)]


def misfits_of(conversations, sound=None):
    """`sound` are records by key that were looked at before."""
    for conversation in conversations:
        yield from damage.misfits(conversation.spec)
        for item in conversation.items:
            assert isinstance(item.key, str)
            if item.record is not None and item.record != (sound or {}).get(item.key):
                yield from damage.misfits(item.record)


def spoil_database(world, part, most):
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
        for statement, values in sampled(spoils, most, part.path):
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
