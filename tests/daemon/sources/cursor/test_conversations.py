"""What is a conversation, what is none, and which are subagents of another."""

from __future__ import annotations

import json

import pytest
from tests.cursor_databases import (
    bubble,
    composer,
    prompt,
    put_bubble,
    put_composer,
    put_conversation,
    put_header,
    small_talk,
)
from tests.daemon.sources.cursor.cursor_home import say

# -- what is no conversation


def test_a_ghost_is_left_out(cursor):
    put_composer(cursor.db, composer("ghost", name=None))
    cursor.read()
    assert cursor.world.sql("SELECT native_id FROM sessions") == []


def test_a_draft_is_left_out(cursor):
    put_composer(cursor.db, composer("draft", name=None, isDraft=True, text="unsent words"))
    cursor.read()
    assert cursor.world.sql("SELECT native_id FROM sessions") == []


def test_a_named_shell_is_left_out(cursor):
    put_composer(cursor.db, composer("shell", name="Only a name"))
    cursor.read()
    done = cursor.world.run("sess", "list", "--no-sync", "--all", "--json")
    assert done.stdout == ""


def test_what_was_not_sent_is_not_said(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, text="unsent words"), talk)
    cursor.read()
    assert cursor.found("unsent") == []


def test_a_ghost_that_begins_to_talk_is_a_conversation(cursor):
    put_composer(cursor.db, composer("c", name=None))
    cursor.read()
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.texts("c") == ["one"]


def test_bubbles_without_a_composer_are_a_conversation(cursor):
    for one in reversed(small_talk("lost")):
        put_bubble(cursor.db, "c", one)
    cursor.read()
    assert [kind for kind, _, _ in cursor.shown("c")] == [
        *("user", "thinking", "tool_use", "tool_use", "assistant"),
    ]
    assert cursor.facts("c", "title") == "lost please fix the parser"


def test_a_composer_that_comes_after_its_bubbles_gives_them_a_name(cursor):
    talk = small_talk("lost")
    for one in talk:
        put_bubble(cursor.db, "c", one)
    cursor.read()
    put_composer(cursor.db, composer("c", talk, name="Found"))
    cursor.read()
    assert cursor.facts("c", "title") == "Found"


# -- subagents

PARENT_FIRST = pytest.mark.parametrize("order", [("top", "sub"), ("sub", "top")])
INFO = {"parentComposerId": "top", "subagentTypeName": "explore", "toolCallId": "call_7\nfc_7"}


def put_family(cursor, order, *, info=None, listed=None, header=False):
    for name in order:
        talk = [prompt(f"{name}-1", f"{name} words")]
        more = {"subagentInfo": info} if info and name == "sub" else {}
        more |= {"subagentComposerIds": listed} if listed and name == "top" else {}
        value = composer(name, talk, **more)
        put_conversation(cursor.db, value, talk)
        if header:
            put_header(cursor.db, value | ({"subagentInfo": INFO} if name == "sub" else {}))
        cursor.read()


@PARENT_FIRST
def test_a_subagent_that_names_its_parent(cursor, order):
    put_family(cursor, order, info=INFO)
    assert cursor.parent("sub") == "top"
    assert cursor.facts("sub", "kind", "agent_type", "call_id") == ("subagent", "explore", "call_7")
    assert cursor.facts("top", "kind") == "main"


@PARENT_FIRST
def test_a_subagent_whose_header_names_its_parent(cursor, order):
    put_family(cursor, order, header=True)
    assert cursor.parent("sub") == "top"
    assert cursor.facts("sub", "kind", "agent_type", "call_id") == ("subagent", "explore", "call_7")


@PARENT_FIRST
def test_a_subagent_that_its_parent_names(cursor, order):
    put_family(cursor, order, listed=["sub"])
    assert cursor.parent("sub") == "top"
    assert cursor.facts("sub", "kind") == "subagent"
    assert cursor.facts("top", "kind") == "main"


def test_a_subagent_that_its_parent_names_later(cursor):
    put_family(cursor, ("top", "sub"))
    put_composer(cursor.db, composer("top", [prompt("top-1", "")], subagentComposerIds=["sub"]))
    cursor.read()
    assert (cursor.parent("sub"), cursor.facts("sub", "kind")) == ("top", "subagent")


def test_a_subagent_stays_one_when_it_says_more(cursor):
    put_family(cursor, ("sub", "top"), listed=["sub"])
    put_bubble(cursor.db, "sub", bubble("sub-2", text="more"))
    cursor.read()
    assert (cursor.parent("sub"), cursor.facts("sub", "kind")) == ("top", "subagent")


def test_a_header_that_comes_later_makes_a_subagent(cursor):
    put_family(cursor, ("top", "sub"))
    put_header(cursor.db, composer("sub", subagentInfo=INFO))
    cursor.read()
    assert (cursor.parent("sub"), cursor.facts("sub", "kind")) == ("top", "subagent")


def test_a_subagent_that_was_never_read_is_not_listed(cursor):
    put_family(cursor, ("top",), listed=["sub"])
    done = cursor.world.run("sess", "list", "--no-sync", "--all", "--json", check=0)
    assert [json.loads(line)["session"] for line in done.stdout.splitlines()] == ["top"]
