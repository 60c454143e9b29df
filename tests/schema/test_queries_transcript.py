"""The events of one session."""

from __future__ import annotations

from contextlib import closing

import pytest

from sess_schema.connection import open_reader
from sess_schema.queries import sessions, transcript

FORK = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def index(world):
    t = world.transcript()
    given = {"file_path": "/code/demo/a.go", "edits": [{"old_string": "1", "new_string": "2"}]}
    records = [
        t.prompt("first"),
        t.call("c1", "MultiEdit", **given),
        t.result("c1", "done"),
        t.answer("second"),
    ]
    t.append(*records)
    fork = world.transcript(FORK)
    fork.append(*records, fork.answer("third", timestamp="2026-02-03T10:00:00.000Z"))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        yield db


def entries(db, session, **options):
    return [*transcript.entries(db, sessions.resolve(db, session).key, **options)]


def test_events_come_in_the_order_of_their_records(index):
    """Each event once; a result is part of its call."""
    assert [entry.text or entry.output for entry in entries(index, "1111")] == [
        "first",
        "done",
        "second",
    ]


def test_a_fork_shows_what_it_copied(index):
    """Copied events appear in the fork too, and tell whose they are."""
    shown = entries(index, FORK)
    original = sessions.resolve(index, "1111").key
    own = sessions.resolve(index, FORK).key
    assert [entry.owner for entry in shown] == [original, original, original, own]
    assert shown[-1].text == "third"


def test_a_tools_input_has_its_structure(index):
    """The archive gives the input back as the agent wrote it."""
    call = entries(index, "1111")[1]
    assert transcript.structured_input(index, call) == {
        "file_path": "/code/demo/a.go",
        "edits": [{"old_string": "1", "new_string": "2"}],
    }
    assert transcript.files(index, call.event) == [{"path": "/code/demo/a.go", "action": "edit"}]


def test_rewritten_events_are_left_out_unless_asked_for(world, index):
    """A shortened file shows only what it still has; the rest can be seen."""
    for name in ("1111", FORK):
        path = world.transcript(sessions.resolve(index, name).session).path
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    world.ingest()
    assert [entry.text for entry in entries(index, "1111")] == ["first", ""]
    everything = entries(index, "1111", superseded=True)
    assert [(entry.text, bool(entry.retired)) for entry in everything] == [
        ("first", False),
        ("", False),
        ("second", True),
    ]
    retired = everything[-1].event
    key = sessions.resolve(index, "1111").key
    assert not transcript.holds(index, key, retired)
    assert transcript.holds(index, key, retired, superseded=True)
