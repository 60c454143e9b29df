"""Bubbles that change: the event stays, what it says is replaced."""

from __future__ import annotations

from tests.cursor_databases import (
    composer,
    put_bubble,
    put_conversation,
    reading,
    small_talk,
    terminal,
    thought,
)
from tests.daemon.sources.cursor.cursor_home import ids, say


def test_a_bubble_that_grows_keeps_its_event(cursor):
    talk = say("one", "two begins")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = ids(cursor, "c")
    put_bubble(cursor.db, "c", talk[1] | {"text": "two begins and ends"})
    cursor.read()
    assert ids(cursor, "c") == before
    assert cursor.texts("c") == ["one", "two begins and ends"]


def test_nothing_of_the_old_text_is_found(cursor):
    talk = say("zebra")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_bubble(cursor.db, "c", talk[0] | {"text": "giraffe"})
    cursor.read()
    assert (cursor.found("zebra"), cursor.found("giraffe")) == ([], ["c"])
    assert cursor.lines("c") == [{"composerId": "c", "bubble": talk[0] | {"text": "giraffe"}}]
    cursor.world.check()


def test_the_other_bubbles_are_not_touched_by_a_replacement(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = cursor.world.dump()["events"]
    put_bubble(cursor.db, "c", talk[4] | {"text": "another end"})
    assert cursor.read().records == 1
    assert [row for row in cursor.world.dump()["events"] if row not in before] != []
    assert len([row for row in cursor.world.dump()["events"] if row not in before]) == 1


def test_a_call_that_ends_keeps_its_event(cursor):
    call = terminal("b1", "make", status="loading")
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    before = ids(cursor, "c")
    assert [e.status for e in cursor.entries("c")] == ["pending"]
    put_bubble(cursor.db, "c", terminal("b1", "make", "all done"))
    cursor.read()
    assert ids(cursor, "c") == before
    assert cursor.shown("c") == [("tool_use", "all done", "ok")]


def test_files_follow_a_replacement(cursor):
    call = reading("b1", "/code/demo/a.py", "text")
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    put_bubble(cursor.db, "c", reading("b1", "/code/demo/b.py", "text"))
    cursor.read()
    assert cursor.world.sql("SELECT path, action FROM files") == [("/code/demo/b.py", "read")]


def test_commits_follow_a_replacement(cursor):
    def commit(sha):
        return terminal("b1", "git commit -m x", f"[main {sha}] Fix it\n 1 file changed")

    put_conversation(cursor.db, composer("c", [commit("aaaa111")]), [commit("aaaa111")])
    cursor.read()
    before = cursor.world.sql("SELECT sha FROM commits")
    put_bubble(cursor.db, "c", commit("bbbb222"))
    cursor.read()
    assert before == [("aaaa111",)]
    assert cursor.world.sql("SELECT sha FROM commits") == [("bbbb222",)]


def test_a_bubble_that_becomes_something_else(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_bubble(cursor.db, "c", thought("b1", "hm"))
    cursor.read()
    assert cursor.shown("c") == [("thinking", "hm", None)]
    assert cursor.facts("c", "events") == 1


def test_a_bubble_that_says_more_than_one_thing_and_then_less(cursor):
    call = terminal("b1", "make", "made")
    put_conversation(cursor.db, composer("c", [call]), [call | {"text": "I make it"}])
    cursor.read()
    assert [e.type for e in cursor.entries("c")] == ["assistant", "tool_use"]
    put_bubble(cursor.db, "c", call)
    cursor.read()
    assert cursor.shown("c") == [("tool_use", "made", "ok")]
    assert cursor.found('"I make it"') == []
    cursor.world.check()


def test_a_result_apart_from_its_call_may_change(cursor):
    call = {"name": "grep", "toolCallId": "t1", "args": {"pattern": "x"}}
    first = {"type": 2, "bubbleId": "b1", "text": "", "toolFormers": [call]}

    def result(text):
        return {"type": 2, "bubbleId": "b2", "text": "",
                "toolResults": [{"toolCallId": "t1", "result": text}]}  # fmt: skip

    put_conversation(cursor.db, composer("c", [first, result("")]), [first, result("zebra")])
    cursor.read()
    put_bubble(cursor.db, "c", result("giraffe"))
    cursor.read()
    assert cursor.shown("c") == [("tool_use", "giraffe", "ok")]
    assert cursor.found("zebra") == []
