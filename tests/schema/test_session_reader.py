"""The events of one session."""

from __future__ import annotations

from contextlib import closing

import pytest

from sess_schema import archive
from sess_schema.connection import open_reader
from sess_schema.queries import sessions
from sess_schema.session import Reader

UNPACK = archive.unpack
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


def reader_of(db, session, **options):
    return Reader(db, sessions.resolve(db, session).key, **options)


def entries(db, session, **options):
    return [*reader_of(db, session, **options).entries()]


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
    assert [entry.session_id for entry in shown] == [original, original, original, own]
    assert shown[-1].text == "third"


def test_a_tools_input_has_its_structure(index):
    """The archive gives the input back as the agent wrote it."""
    reader = reader_of(index, "1111")
    call = [*reader.entries()][1]
    assert reader.input(call) == {
        "file_path": "/code/demo/a.go",
        "edits": [{"old_string": "1", "new_string": "2"}],
    }
    assert reader.files(call.id) == [{"path": "/code/demo/a.go", "action": "edit"}]


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
    retired = everything[-1].id
    assert not reader_of(index, "1111").holds(retired)
    assert reader_of(index, "1111", superseded=True).holds(retired)


def test_some_events_come_as_they_are_asked_for_and_cut(index):
    """In the order of the request, with the first characters of each text."""
    reader = reader_of(index, "1111")
    first, call, second = reader.order
    shown = reader.some([second, first], 3)
    assert [(entry.id, entry.text) for entry in shown] == [(second, "sec"), (first, "fir")]
    assert [entry.output for entry in reader.some([call])] == ["done"]


def test_the_archive_is_unpacked_once_for_a_whole_session(index, monkeypatch):
    """However many records are asked for, a chunk that several of them lie in is read once."""
    unpacked = []

    def noted(packed):
        unpacked.append(1)
        return UNPACK(packed)

    monkeypatch.setattr(archive, "unpack", noted)
    reader = reader_of(index, "1111")
    given = [(reader.input(entry), reader.result(entry)) for entry in reader.entries()]
    assert given[1][1] == "done"
    assert len(unpacked) == 1
