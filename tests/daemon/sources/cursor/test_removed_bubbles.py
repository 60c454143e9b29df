"""Bubbles and conversations that go, and some that return."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.cursor_databases import (
    CREATED,
    composer,
    put_bubble,
    put_composer,
    put_conversation,
    small_talk,
    terminal,
)
from tests.daemon.sources.cursor.cursor_home import ids, say

from sess_schema.connection import open_reader
from sess_schema.session import Reader


def test_a_removed_bubble_is_retired(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    cursor.delete("bubbleId:c:b2")
    put_composer(cursor.db, composer("c", [talk[0], talk[2]]))
    cursor.read()
    assert cursor.texts("c") == ["one", "three"]
    assert cursor.found("two") == []
    assert cursor.facts("c", "events") == 2
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "three"]


def test_a_removed_bubble_that_comes_back_is_the_same(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = ids(cursor, "c")
    cursor.delete("bubbleId:c:b2")
    cursor.read()
    assert cursor.texts("c") == ["one", "three"]
    put_bubble(cursor.db, "c", talk[1])
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert ids(cursor, "c") == before
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]
    assert cursor.found("two") == ["c"]
    cursor.world.check()


def delete_conversation(cursor, session, talk):
    cursor.delete(f"composerData:{session}")
    for one in talk:
        cursor.delete(f"bubbleId:{session}:{one['bubbleId']}")


def test_a_deleted_conversation_stays_and_is_said_to_be_gone(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = cursor.shown("c")
    delete_conversation(cursor, "c", talk)
    cursor.read()
    assert cursor.shown("c") == before
    done = cursor.world.run("sess", "list", "--no-sync", "--json", check=0)
    assert json.loads(done.stdout)["source_gone"] is True


def test_a_deleted_conversation_can_be_restored(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    delete_conversation(cursor, "c", talk)
    cursor.read()
    assert [line["bubble"] for line in cursor.lines("c")] == talk


def test_a_deleted_conversation_returns_without_duplicates(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = cursor.shown("c"), ids(cursor, "c"), cursor.lines("c"), cursor.facts("c")
    delete_conversation(cursor, "c", talk)
    cursor.read()
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert (cursor.shown("c"), ids(cursor, "c"), cursor.lines("c"), cursor.facts("c")) == before
    assert cursor.state("c") == "live"


def test_a_conversation_that_is_deleted_row_by_row_stays_whole(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    cursor.delete("composerData:c")
    for one in talk:
        cursor.delete(f"bubbleId:c:{one['bubbleId']}")
        cursor.read()
        assert cursor.texts("c") == ["one", "two", "three"]
        assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]
    assert cursor.state("c") == "gone"


def test_a_conversation_whose_bubbles_go_before_its_composer(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    for one in talk:
        cursor.delete(f"bubbleId:c:{one['bubbleId']}")
    cursor.read()
    cursor.delete("composerData:c")
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert cursor.state("c") == "gone"


def test_a_conversation_half_deleted_and_written_again_is_whole(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    cursor.delete("composerData:c")
    cursor.delete("bubbleId:c:b1")
    cursor.read()
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]


def commands(cursor, session):
    """The structured input of each call, out of the archive."""
    with closing(open_reader(cursor.world.state / "index.db")) as db:
        key = db.execute("SELECT id FROM sessions WHERE native_id = ?", (session,)).get
        reader = Reader(db, key)
        return [reader.input(entry)["command"] for entry in reader.entries()]


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 1, 3), (3, 2, 1)])
def test_each_call_keeps_its_own_input_while_its_conversation_is_deleted(cursor, order):
    """Row by row, and written in another order than it is read."""
    talk = [terminal(f"b{n}", f"step {n}", "out", at=CREATED + n) for n in (1, 2, 3)]
    put_conversation(cursor.db, composer("c", talk), talk[1:])
    cursor.read()
    put_bubble(cursor.db, "c", talk[0])
    cursor.read()
    cursor.delete("composerData:c")
    for number in order:
        cursor.delete(f"bubbleId:c:b{number}")
        cursor.read()
        assert commands(cursor, "c") == ["step 1", "step 2", "step 3"]
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert commands(cursor, "c") == ["step 1", "step 2", "step 3"]


@pytest.mark.parametrize("front", [1, 2, 3])
def test_each_call_keeps_its_own_input_when_one_comes_to_the_front(cursor, front):
    talk = [terminal(f"b{n}", f"step {n}", "out", at=CREATED + n) for n in (1, 2, 3)]
    others = [one for n, one in enumerate(talk, 1) if n != front]
    put_conversation(cursor.db, composer("c", others), others)
    cursor.read()
    put_conversation(cursor.db, composer("c", [talk[front - 1], *others]), [talk[front - 1]])
    cursor.read()
    numbers = [front, *(n for n in (1, 2, 3) if n != front)]
    assert commands(cursor, "c") == [f"step {n}" for n in numbers]
