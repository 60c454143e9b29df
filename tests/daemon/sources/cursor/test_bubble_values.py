"""What the value of a bubble may look like, and how it is shown."""

from __future__ import annotations

import json

import pytest
from tests.cursor_databases import (
    CREATED,
    USER,
    bubble,
    composer,
    encoded,
    prompt,
    put,
    put_bubble,
    put_composer,
    put_conversation,
    terminal,
)
from tests.daemon.sources.cursor.cursor_home import say


def test_a_bubble_without_a_value_is_left_out(cursor):
    (one,) = say("one")
    put_conversation(cursor.db, composer("c", [one]), [one])
    put(cursor.db, "bubbleId:c:b2", None)
    cursor.read()
    assert cursor.texts("c") == ["one"]


def test_a_bubble_that_loses_its_value_is_no_longer_shown(cursor):
    talk = say("one", "two")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put(cursor.db, "bubbleId:c:b2", None)
    cursor.read()
    assert cursor.texts("c") == ["one"]
    assert cursor.found("two") == []


def test_a_bubble_that_gets_its_value_later_is_shown(cursor):
    talk = say("one", "two")
    put_conversation(cursor.db, composer("c", talk), talk[:1])
    put(cursor.db, "bubbleId:c:b2", None)
    cursor.read()
    put_bubble(cursor.db, "c", talk[1])
    cursor.read()
    assert cursor.texts("c") == ["one", "two"]


@pytest.mark.parametrize("broken", ['{"text": "half', "no json", "[1, 2"])
def test_a_broken_value_is_shown_as_such_and_warned_of(cursor, broken):
    (one,) = say("one")
    put_conversation(cursor.db, composer("c", [one]), [one])
    put(cursor.db, "bubbleId:c:b2", broken)
    cursor.read()
    assert [(e.type, e.label) for e in cursor.entries("c")] == [
        ("assistant", None),
        ("system", "broken"),
    ]
    assert cursor.world.sql("SELECT reason FROM warnings") == [("bubble is not an object",)]


def test_a_broken_value_that_is_whole_later_is_shown_as_the_bubble_it_is(cursor):
    (one,) = say("one")
    put_composer(cursor.db, composer("c", [one]))
    put(cursor.db, "bubbleId:c:b1", encoded(one)[:-20])
    cursor.read()
    put_bubble(cursor.db, "c", one)
    cursor.read()
    assert cursor.shown("c") == [("assistant", "one", None)]
    assert cursor.world.sql("SELECT reason FROM warnings WHERE retired = 0") == []


@pytest.mark.parametrize("layers", [1, 2])
def test_a_bubble_inside_strings_is_unwrapped(cursor, layers):
    (one,) = say("one")
    value = encoded(one)
    for _ in range(layers):
        value = json.dumps(value)
    put_composer(cursor.db, composer("c", [one]))
    put(cursor.db, "bubbleId:c:b1", value)
    cursor.read()
    assert cursor.shown("c") == [("assistant", "one", None)]


def test_a_value_may_be_a_blob(cursor):
    (one,) = say("one")
    put_composer(cursor.db, composer("c", [one]))
    put(cursor.db, "bubbleId:c:b1", encoded(one).encode())
    cursor.read()
    assert cursor.shown("c") == [("assistant", "one", None)]


def test_the_text_of_a_prompt_may_be_only_in_its_rich_text(cursor):
    typed = prompt("b1", "typed words") | {"text": ""}
    put_conversation(cursor.db, composer("c", [typed]), [typed])
    cursor.read()
    assert cursor.shown("c") == [("user", "typed words", None)]


def test_the_older_names_of_fields_are_known_too(cursor):
    call = {"name": "grep", "toolCallId": "t1", "status": "completed", "args": {"pattern": "x"}}
    talk = [
        {"type": USER, "bubbleId": "b1", "text": "", "richtext": "old question"},
        {"type": 2, "bubbleId": "b2", "text": "old answer", "toolFormers": [call]},
        {"type": 2, "bubbleId": "b3", "text": "",
         "toolResults": [{"toolCallId": "t1", "result": "old result"}]},
    ]  # fmt: skip
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.shown("c") == [
        ("user", "old question", None),
        ("assistant", "old answer", None),
        ("tool_use", "old result", "ok"),
    ]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        *(("completed", "ok"), ("error", "error"), ("cancelled", "denied"), ("rejected", "denied")),
        *(("loading", "pending"), ("pending", "pending")),
    ],
)
def test_the_status_of_a_call(cursor, status, shown):
    call = terminal("b1", "make", status=status, error="bad" if status == "error" else None)
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    assert [e.status for e in cursor.entries("c")] == [shown]


def test_two_equal_calls_at_the_same_moment_are_two(cursor):
    """Parallel calls begin together; only their ids tell them apart."""
    talk = [terminal(f"b{n}", "make", "the same output") for n in (1, 2)]
    talk.append(bubble("b3", text="done", at=CREATED + 5000))
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.texts("c") == ["the same output", "the same output", "done"]


def test_two_equal_answers_at_the_same_moment_are_two(cursor):
    talk = [bubble(f"b{n}", text="the same") for n in (1, 2)]
    talk.append(bubble("b3", text="done", at=CREATED + 5000))
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.texts("c") == ["the same", "the same", "done"]


def test_equal_answers_are_two_when_the_second_comes_later(cursor):
    talk = [bubble(f"b{n}", text="the same") for n in (1, 2)]
    talk.append(bubble("b3", text="done", at=CREATED + 5000))
    put_conversation(cursor.db, composer("c", talk), [talk[0], talk[2]])
    cursor.read()
    put_bubble(cursor.db, "c", talk[1])
    cursor.read()
    assert cursor.texts("c") == ["the same", "the same", "done"]
