"""In which order the bubbles of a conversation are shown."""

from __future__ import annotations

import json

from tests.cursor_databases import (
    CREATED,
    composer,
    put,
    put_bubble,
    put_composer,
    put_conversation,
    terminal,
)
from tests.daemon.sources.cursor.cursor_home import say


def test_headers_give_the_order_whatever_the_rowids_and_times(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [third, first, second]), [second, third, first])
    cursor.read()
    assert cursor.texts("c") == ["three", "one", "two"]


def test_a_bubble_outside_the_headers_is_placed_by_its_time(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [first, third]), [third, second, first])
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]


def test_bubbles_without_headers_are_in_the_order_of_their_times(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [], status="aborted"), [third, second, first])
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]


def test_bubbles_without_headers_and_times_are_in_the_order_of_their_rows(cursor):
    talk = say("one", "two", "three")
    for one in talk:
        del one["createdAt"]
    put_conversation(cursor.db, composer("c", []), [talk[2], talk[0], talk[1]])
    cursor.read()
    assert cursor.texts("c") == ["three", "one", "two"]


def test_headers_that_are_emptied_later_leave_the_conversation_as_it_was(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_composer(cursor.db, composer("c", [], status="aborted"))
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]


def test_headers_may_name_bubbles_that_are_not_there(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [first, second, third]), [first, third])
    cursor.read()
    assert cursor.texts("c") == ["one", "three"]


def test_a_bubble_that_headers_already_named_comes_to_its_place(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [first, second, third]), [first, third])
    cursor.read()
    put_bubble(cursor.db, "c", second)
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]


def test_headers_may_name_a_bubble_by_the_id_inside_its_value(cursor):
    first, second, third = say("one", "two", "three")
    put_composer(cursor.db, composer("c", [third, second, first]))
    put(cursor.db, "bubbleId:c:key1", first)
    put(cursor.db, "bubbleId:c:key2", second)
    put(cursor.db, "bubbleId:c:key3", third)
    cursor.read()
    assert cursor.texts("c") == ["three", "two", "one"]


def test_a_new_bubble_at_the_front_moves_the_others(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [second, third]), [second, third])
    cursor.read()
    put_conversation(cursor.db, composer("c", [first, second, third]), [first])
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]


def test_other_headers_make_another_order(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [first, second, third]), [first, second, third])
    cursor.read()
    put_composer(cursor.db, composer("c", [second, third, first]))
    cursor.read()
    assert cursor.texts("c") == ["two", "three", "one"]
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["two", "three", "one"]


def test_the_structured_input_of_a_call_that_moved_is_still_its_own(cursor):
    first, second = terminal("b1", "first", "out"), terminal("b2", "second", "out", at=CREATED + 9)
    put_conversation(cursor.db, composer("c", [second]), [second])
    cursor.read()
    put_conversation(cursor.db, composer("c", [first, second]), [first])
    cursor.read()
    done = cursor.world.run("sess", "show", "--no-sync", "c", "--json", check=0)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["input"]["command"] for event in events] == ["first", "second"]
