"""Zed: threads that are replaced whole, and such that cannot be decoded."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
import zstandard
from tests.golden_home import GoldenWorld, database

from sessiond.sources.zed import read_message

THREAD = "2ed00000-0000-4000-8000-000000000001"


@pytest.fixture
def world(tmp_path):
    made = GoldenWorld(tmp_path, "zed")
    made.lay_all()
    made.ingest()
    return made


def opened(world):
    return closing(database(world.root / ".local/share/zed/threads/threads.db"))


def change(world, edit):
    """Replace the thread, as Zed does when anything in it changes."""
    with opened(world) as db:
        ((data,),) = db.execute("SELECT data FROM threads WHERE id = ?", (THREAD,))
        thread = json.loads(zstandard.ZstdDecompressor().decompress(data))
        edit(thread["messages"])
        packed = zstandard.ZstdCompressor().compress(json.dumps(thread).encode())
        db.execute(
            "UPDATE threads SET data = ?, updated_at = '2026-07-01T09:09:00Z' WHERE id = ?",
            (packed, THREAD),
        )
    return world.ingest().records


def events(world):
    return world.sql(
        "SELECT e.id FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE s.native_id = ? AND e.retired = 0 ORDER BY e.id",
        THREAD,
    )


def test_only_what_is_new_in_a_replaced_thread_is_written(world):
    """The other messages keep their events."""
    before = events(world)
    said = {"Agent": {"content": [{"Text": "It floats."}], "tool_results": {}}}
    assert change(world, lambda messages: messages.append(said)) == 1
    assert events(world)[: len(before)] == before
    assert world.found("floats") == ["It floats."]
    world.check()


def test_a_result_completes_its_call(world):
    """It arrives in the message that has the call."""

    def answer(messages):
        results = messages[2]["Agent"]["tool_results"]
        results["call_7"] = {"is_error": False, "content": [{"Text": "Aye"}], "output": None}

    assert change(world, answer) == 1
    assert ("tool_use", "sailAye", "ok") in world.shown(THREAD)
    world.check()


def test_a_prompt_that_is_sent_again_replaces_what_followed(world):
    """Editing a prompt removes the messages after it."""
    change(world, lambda messages: messages.__delitem__(slice(5, None)))
    assert [text for kind, text, _ in world.shown(THREAD) if kind == "user"] == [
        f"Paint @{world.root}/harbour/boat.txt blue"
    ]
    world.check()


def test_a_thread_that_cannot_be_decoded_is_noted(world):
    """What is known of it stays, and the others are read."""
    before = world.shown(THREAD)
    with opened(world) as db:
        spoil = "UPDATE threads SET data = x'28b52ffd00', updated_at = '2026-07-02T09:00:00Z'"
        db.execute(f"{spoil} WHERE id = ?", (THREAD,))
        db.execute(
            "INSERT INTO threads SELECT 'bad', 'Bad', updated_at, data_type, data,"
            " NULL, NULL, NULL, NULL FROM threads WHERE id = ?",
            (THREAD,),
        )
        said = {"messages": [{"User": {"id": "u", "content": [{"Text": "hello"}]}}]}
        db.execute(
            "INSERT INTO threads (id, summary, updated_at, data_type, data)"
            " VALUES ('new', 'New', '2026-07-02T09:00:00Z', 'json', ?)",
            (json.dumps(said),),
        )
    assert world.ingest().skipped == []
    noted = "SELECT sum(times) FROM warnings WHERE reason = 'a thread that cannot be decoded'"
    assert world.sql(noted) == [(2,)]
    assert world.shown(THREAD) == before
    assert world.shown("new") == [("user", "hello", None)]


def test_a_thread_without_messages_is_none_yet(world):
    """One that lost them is empty."""
    change(world, list.clear)
    assert world.shown(THREAD) == []
    with opened(world) as db:
        db.execute(
            "INSERT INTO threads (id, summary, updated_at, data_type, data)"
            " VALUES ('empty', 'Empty', '2026-07-02T09:00:00Z', 'json', '{\"messages\": []}')"
        )
    assert world.ingest().skipped == []
    assert world.sql("SELECT 1 FROM sessions WHERE native_id = 'empty'") == []


def test_a_result_in_the_next_prompt_is_that_of_its_call():
    """Where the first version of the format put it."""
    failed = {"tool_use_id": "t1", "is_error": True, "content": "no oars"}
    record = read_message({"role": "user", "text": "Go on", "tool_results": [failed]})
    assert [event.type for event in record.events] == ["user"]
    assert [(one.call_id, one.output, one.status) for one in record.results] == [
        ("t1", "no oars", "error")
    ]
