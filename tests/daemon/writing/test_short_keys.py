"""Short keys narrow a search for an id; the ids themselves decide."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Any

import apsw
from tests.conftest import World, opened

from sess_schema import ids
from sess_schema.ids import SessionId
from sessiond.ingest import Ingest
from sessiond.sourcekit.base import Record, Usage
from sessiond.writing.sessions import Session
from sessiond.writing.transaction import Store
from sessiond.writing.usage import _response

OLD = "aaaaaaaa-1111-4111-8111-111111111111"
FORK = "bbbbbbbb-1111-4111-8111-111111111111"
OTHER = "cccccccc-1111-4111-8111-111111111111"
ROUNDS = 3


def write(world, number):
    """What a session writes, a fork of it, and another one, with a title and a withdrawn answer."""
    old = world.transcript(OLD)
    old.count = 10 * number
    lines = [
        old.prompt(f"warm pot {number}"),
        old.call(f"call_{number}", command="make tea"),
        old.result(f"call_{number}", "no water", is_error=True),
        old.answer("The tap is shut."),
    ]
    instead = old.answer("The kettle leaks.", supersedesUuids=[lines[-1]["uuid"]])
    old.append(*lines, instead)
    fork = world.transcript(FORK)
    fork.append(*({**line, "sessionId": FORK} for line in lines[:2]))
    fork.append({**old.result(f"call_{number}", "tea"), "sessionId": FORK, "uuid": f"f{number}"})
    other = world.transcript(OTHER)
    other.count = 10 * number
    summary = {"type": "summary", "summary": f"About pot {number}", "leafUuid": lines[0]["uuid"]}
    other.append(summary, other.call(f"other_{number}", command="ls"), other.answer("Done."))


def ingested(folder):
    world = World(folder)
    for number in range(ROUNDS):
        write(world, number)
        world.ingest()
    world.check()
    return world.dump()


def test_equal_keys_change_nothing(tmp_path, monkeypatch):
    """With one key for every id, records, calls, responses and titles come out the same."""
    (tmp_path / "one").mkdir()
    (tmp_path / "all").mkdir()
    usual = ingested(tmp_path / "one")
    monkeypatch.setattr(ids, "crc32", lambda _: 7)
    assert ingested(tmp_path / "all") == usual
    with closing(apsw.Connection(str(tmp_path / "all" / "state" / "index.db"))) as db:
        assert db.execute("SELECT DISTINCT native_key FROM records WHERE native_id <> ''").get == 7


def test_responses_with_one_message_id_stay_apart():
    """Some gateways give every response the same id; none of 200,000 may be taken for another."""
    session = Session(SessionId(1), "claude", OLD, "")
    spent = (
        Usage("msg_1", f"req_{number}", "a-model", "end_turn", 1, 1, 0, 0, 0)
        for number in range(200_000)
    )
    assert len({_response(session, Record("assistant"), one) for one in spent}) == 200_000


def test_nothing_is_looked_for_in_a_whole_table(world):
    """Whatever a pass asks of what earlier ones stored, an index leads to it."""
    for number in range(ROUNDS):
        write(world, number)
        world.ingest()
    write(world, ROUNDS)
    asked: dict[str, Any] = {}
    with closing(opened(world.state / "index.db")) as db:
        db.exec_trace = lambda _, sql, values: asked.setdefault(sql, values) is values or True
        Ingest(Store(db)).reconcile(world.places())
        db.exec_trace = None
        scans = [
            (detail, sql)
            for sql, values in asked.items()
            if sql.startswith(("SELECT", "UPDATE", "DELETE", "INSERT"))
            for *_, detail in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            if re.match(r"SCAN (?:records|events|usage|[cetou])$", detail)
        ]
    assert any("native_key IN" in sql for sql in asked)
    assert scans == []
