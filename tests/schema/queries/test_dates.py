"""When a session took place, and what is known about it where no record says."""

from __future__ import annotations

import json
import os
from contextlib import closing

import pytest
from tests.cursor_databases import bubble, composer, make_global, put_conversation

from sess_common.errors import SessError
from sess_schema import numbers, objects
from sess_schema.connection import open_reader
from sess_schema.marks import Marks
from sess_schema.queries import sessions
from sess_schema.session import Reader

ONE = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
WRITTEN = 1_770_000_000  # 2026-02-02T02:40:00Z, in seconds


@pytest.fixture
def index(world):
    def opened():
        world.ingest()
        return closing(open_reader(world.state / "index.db"))

    return opened


def undated(record):
    return {name: value for name, value in record.items() if name != "timestamp"}


def said(db, row):
    return objects.session(row, "", numbers.of(db, row), Marks(db))


def test_a_time_from_the_file_is_marked(world, index):
    """Times in the records are not."""
    t = world.transcript(ONE)
    t.append(undated(t.prompt("when")))
    os.utime(t.path, (WRITTEN, WRITTEN))
    dated = world.transcript(OTHER)
    dated.append(dated.prompt("now"))
    with index() as db:
        borrowed, own = (said(db, sessions.resolve(db, name)) for name in (ONE, OTHER))
    assert (borrowed["started"], borrowed["ended"]) == ("2026-02-02T02:40:00.000Z",) * 2
    assert borrowed["time_from"] == "file"
    assert (own["started"], own["time_from"]) == ("2026-02-01T10:00:01.000Z", None)


def test_a_file_dated_1970_dates_nothing(world, index):
    """As in archives and images that are made without times."""
    t = world.transcript(ONE)
    t.append(undated(t.prompt("when")))
    os.utime(t.path, (0, 0))
    with index() as db:
        (row,) = sessions.Listing().rows(db)
        facts = said(db, row)
    assert (row.started, row.ended) == (None, None)
    assert (facts["started"], facts["ended"], facts["time_from"]) == (None, None, None)


def test_a_conversation_that_nobody_dated_has_no_date(world):
    """A database changes all the time: its own time says nothing about a conversation in it."""
    place = world.root / ".config/Cursor/User/globalStorage/state.vscdb"
    place.parent.mkdir(parents=True)
    talk = [bubble("b1", text="hello") | {"createdAt": None}]
    about = {**composer("c1", talk), "createdAt": 0, "lastUpdatedAt": 0}
    db = make_global(place)
    put_conversation(db, about, talk)
    db.close()
    world.run("sessiond", "sync", check=0)
    (line,) = world.run("sess", "list", "--json", "--no-sync", check=0).stdout.splitlines()
    facts = json.loads(line)
    assert (facts["session"], facts["started"], facts["ended"]) == ("c1", None, None)
    assert "1970" not in world.run("sess", "list", "--no-sync", check=0).stdout
    assert "1970" not in world.run("sess", "show", "c1", "--no-sync", check=0).stdout


def test_a_document_without_times_has_that_of_its_file(world):
    """Unlike a database, a document is rewritten only when its conversation goes on."""
    chat = world.root / ".gemini/tmp/demo/chats/session-2026-02-02T02-40-aaaaaaaa.json"
    chat.parent.mkdir(parents=True)
    messages = [{"id": "m1", "type": "user", "content": "hello"}]
    chat.write_text(json.dumps({"sessionId": ONE, "messages": messages}))
    os.utime(chat, (WRITTEN, WRITTEN))
    world.run("sessiond", "sync", check=0)
    (line,) = world.run("sess", "list", "--json", "--no-sync", check=0).stdout.splitlines()
    facts = json.loads(line)
    assert (facts["started"], facts["time_from"]) == ("2026-02-02T02:40:00.000Z", "file")


def test_an_event_says_where_its_time_comes_from(world, index):
    """A record without a time has that of the record before it."""
    t = world.transcript(ONE)
    t.append(t.prompt("now"), undated(t.answer("then")))
    with index() as db:
        reader = Reader(db, sessions.resolve(db, ONE).key)
        found = [objects.event(entry, None, key="", images=0) for entry in reader.entries()]
    assert [(one["text"], one["ts"], one["ts_from"]) for one in found] == [
        ("now", "2026-02-01T10:00:01.000Z", None),
        ("then", "2026-02-01T10:00:01.000Z", "previous"),
    ]


@pytest.mark.parametrize(
    "only",
    [
        b'{"type":"summary","summary":"Another session","leafUuid":"not-here"}\n',
        b'{"type":"file-history-snapshot","messageId":"m1","snapshot":{}}\n',
        b'{"type":"ai-title","aiTitle":"Nothing happened","sessionId":"x"}\n',
        b"garbage\n\x00\x01\xff\n",
        b'{"type":"system","subtype":"informational","content":"a note","uuid":"u1"}\n',
    ],
)
def test_what_says_nothing_is_not_listed(world, index, only):
    """Titles, notices and garbage are no session for people: found with --all, never `last`."""
    t = world.transcript(ONE)
    t.append(t.prompt("hello"))
    world.transcript(OTHER).append(only)
    with index() as db:
        assert [row.session for row in sessions.Listing().rows(db)] == [ONE]
        assert sessions.resolve(db, "last").session == ONE
        every = {row.session for row in sessions.Listing(every=True).rows(db)}
    assert every == {ONE, OTHER}


def test_last_is_never_a_session_that_says_nothing(world, index):
    """Not even if there is no other."""
    world.transcript(OTHER).append(b'{"type":"summary","summary":"Elsewhere","leafUuid":"x"}\n')
    with index() as db, pytest.raises(SessError, match="no sessions yet"):
        sessions.resolve(db, "last")


def test_a_fork_of_which_nothing_is_new_is_listed(world, index):
    """It shows what it shares with its original."""
    t = world.transcript(ONE)
    shared = [t.assistant([{"type": "text", "text": "well"}])]
    t.append(*shared)
    world.transcript(OTHER).append(*shared)
    with index() as db:
        assert len([*sessions.Listing().rows(db)]) == 2
