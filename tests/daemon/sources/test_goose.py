"""Goose: messages that a compaction writes again, and sums that become a ledger."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.golden_home import GoldenWorld, database

from sessiond.sources.goose import GooseSource, read_message

NEW, OLD = "20260301_1", "20251101_1"
LEDGER = (
    "CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT,"
    " created_timestamp INTEGER, model TEXT, input_tokens INTEGER, output_tokens INTEGER,"
    " total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL,"
    " cost_source TEXT, is_compaction INTEGER DEFAULT 0)"
)
USED = (
    "INSERT INTO usage_ledger (session_id, created_timestamp, input_tokens, output_tokens,"
    " cost_source) VALUES (?, 1761987700, ?, ?, ?)"
)
HIDDEN = (
    "UPDATE kept SET metadata_json = json_set(metadata_json, '$.agentVisible', json('false'))"
    " WHERE json_extract(metadata_json, '$.userVisible')"
)
LATE = (
    "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp) VALUES"
    """ ('msg_late', ?, 'assistant', '[{"type":"text","text":"Dry again."}]', 1772355700)"""
)


@pytest.fixture
def world(tmp_path):
    made = GoldenWorld(tmp_path, "goose")
    made.lay_all()
    made.ingest()
    return made


def write(world, folder, *statements):
    with closing(database(world.root / folder / "sessions.db")) as db, db:
        for statement, *values in statements:
            db.execute(statement, values)


def shown(world, session):
    return world.sql(
        "SELECT e.id, x.text || x.output FROM sessions s JOIN events e ON e.session_id = s.id"
        " JOIN event_texts x ON x.id = e.id WHERE s.native_id = ? AND e.retired = 0 ORDER BY e.id",
        session,
    )


def test_messages_that_are_written_again_stay_the_same(world):
    """A compaction deletes all rows and inserts them anew: only the new ones are new."""
    before = shown(world, NEW)
    write(
        world,
        ".local/share/goose/sessions",
        ("CREATE TEMP TABLE kept AS SELECT * FROM messages WHERE session_id = ?", NEW),
        ("DELETE FROM messages WHERE session_id = ?", NEW),
        ("UPDATE kept SET id = id + 100",),
        (HIDDEN,),
        ("INSERT INTO messages SELECT * FROM kept",),
        (LATE, NEW),
    )
    world.ingest()
    after = shown(world, NEW)
    assert after[: len(before)] == before
    assert [text for _, text in after[len(before) :]] == ["Dry again."]
    assert world.sql("SELECT count(*) FROM records WHERE retired > 0") == [(0,)]
    world.check()


def test_a_truncated_conversation_loses_its_end(world):
    """Editing an earlier prompt deletes it and what follows."""
    write(
        world,
        ".local/share/goose/sessions",
        ("DELETE FROM messages WHERE session_id = ? AND created_timestamp >= 1772355620", NEW),
    )
    world.ingest()
    assert [text for kind, text, _ in world.shown(NEW) if kind == "user"] == [
        "Swim across the lake"
    ]
    world.check()


def test_a_sum_that_is_carried_into_a_ledger_counts_once(world):
    """A session from before the ledger goes on: its sum becomes the first row of its ledger."""
    spent = "SELECT sum(input_tokens), sum(output_tokens) FROM usage u JOIN sessions s"
    spent += f" ON s.id = u.session_id WHERE s.native_id = '{OLD}' AND counted"
    assert world.sql(spent) == [(640, 90)]
    write(
        world,
        "backup/goose",
        (LEDGER,),
        (USED, OLD, 640, 90, "carried_forward"),
        (USED, OLD, 100, 10, "estimated"),
        ("UPDATE sessions SET accumulated_input_tokens = 740, accumulated_output_tokens = 100",),
    )
    world.ingest()
    assert world.sql(spent) == [(740, 100)]
    world.check()


def test_an_error_is_told_and_a_document_is_not():
    blocks = [{"type": "error", "kind": "other", "message": "no water"}, {"type": "document"}]
    record = read_message({"role": "assistant", "content": blocks})
    assert [(event.type, event.text) for event in record.events] == [("system", "no water")]
    assert not record.warnings


def test_on_a_mac_it_may_be_in_either_place():
    assert GooseSource(environ={"HOME": "/h"}, platform="darwin").places() == [
        "/h/.local/share/goose/sessions",
        "/h/Library/Application Support/Block.block.goose/sessions",
    ]
