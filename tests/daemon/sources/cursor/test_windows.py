"""Conversations and prompts in the databases of windows."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.cursor_databases import (
    CREATED,
    composer,
    global_database,
    iso,
    make_global,
    prompt,
    put_conversation,
    put_item,
    workspace_database,
)
from tests.cursor_generations import generation2w

PROMPTS, GENERATIONS = "aiService.prompts", "aiService.generations"
CHATS = "workbench.panel.aichat.view.aichat.chatdata"
COMPOSERS = "composer.composerData"
LIST = "a1b2c3d4-prompts"


@pytest.fixture
def window(world):
    with closing(make_global(workspace_database(world.root), journal="delete")) as db:
        yield db


def message(name, text, kind=1, **more):
    return {"type": kind, "bubbleId": name, "text": text, **more}


def talk(name="c", *conversation, **more):
    return {"composerId": name, "name": "Talk", "createdAt": CREATED, **more,
            "conversation": list(conversation)}  # fmt: skip


def generation(name, text, at, kind="composer"):
    return {"unixMs": at, "generationUUID": name, "type": kind, "textDescription": text}


def sessions(cursor):
    return [name for (name,) in cursor.world.sql("SELECT native_id FROM sessions ORDER BY 1")]


# -- composers in a window


def test_a_composer_in_a_window_grows_and_changes(cursor, window):
    """Only what changed is written again."""
    one, two = message("b1", "one"), message("b2", "two", 2)
    put_item(window, COMPOSERS, {"allComposers": [talk("c", one)]})
    cursor.read()
    put_item(window, COMPOSERS, {"allComposers": [talk("c", one, two)]})
    assert cursor.read().records == 1
    two["text"] = "two and a half"
    put_item(window, COMPOSERS, {"allComposers": [talk("c", one, two)]})
    assert cursor.read().records == 1
    assert cursor.texts("c") == ["one", "two and a half"]


def test_a_composer_that_left_its_window_is_kept(cursor, window):
    put_item(window, COMPOSERS, {"allComposers": [talk("c", message("b1", "one"))]})
    cursor.read()
    put_item(window, COMPOSERS, {"allComposers": []})
    cursor.read()
    assert cursor.texts("c") == ["one"]
    assert cursor.world.sql("SELECT state FROM sources WHERE path LIKE '%#c'") == [("gone",)]
    put_item(window, COMPOSERS, {"allComposers": [talk("c", message("b1", "one"))]})
    cursor.read()
    assert cursor.world.sql("SELECT state FROM sources WHERE path LIKE '%#c'") == [("live",)]


@pytest.mark.parametrize("first", ["window", "global"])
def test_the_global_database_has_the_better_copy(cursor, window, first):
    """Whichever is read first, the conversation is shown once."""
    copy = talk("c", message("b1", "one"), message("b2", "old", 2))
    bubbles = [prompt("b1", "one"), prompt("b3", "three", at=CREATED + 1000)]
    if first == "window":
        put_item(window, COMPOSERS, {"allComposers": [copy]})
        cursor.read()
    put_conversation(cursor.db, composer("c", bubbles), bubbles)
    cursor.read()
    put_item(window, COMPOSERS, {"allComposers": [copy]})
    cursor.read()
    assert cursor.texts("c") == ["one", "three"]


def test_tools_of_a_composer_in_a_window(cursor, window):
    """They are in a string beside the messages, as in the global database of that time."""
    call = {"name": "read_file", "toolCallId": "t1", "status": "completed",
            "params": json.dumps({"target_file": "a.py"}),
            "result": json.dumps({"contents": "text of a"})}  # fmt: skip
    calls = {"bubbleDataMap": json.dumps({"b1": call})}
    value = talk("c", message("b1", "", 2, capabilityType=15))
    value["capabilities"] = [{"type": 15, "data": calls}]
    put_item(window, COMPOSERS, {"allComposers": [value]})
    cursor.read()
    assert cursor.shown("c") == [("tool_use", "text of a", "ok")]


@pytest.mark.parametrize(
    "value", [None, "{", [], {"allComposers": 5}, {"allComposers": [None, {}, {"composerId": 7}]}]
)
def test_a_list_of_composers_that_is_broken(cursor, window, value):
    put_item(window, COMPOSERS, value)
    cursor.read()
    assert sessions(cursor) == []


def test_nothing_else_of_a_window_is_read(cursor, window):
    """It has tokens for signing in."""
    generation2w(cursor.world.root / "other")
    put_item(window, "cursorAuth/accessToken", "very-secret")
    put_item(window, COMPOSERS, {"allComposers": [talk("c", message("b1", "one"))]})
    cursor.read()
    assert not any(
        "very-secret" in str(row) for row in cursor.world.sql("SELECT * FROM database_rows")
    )
    assert cursor.found("very-secret") == []


# -- prompts that a window remembers


def test_prompts_without_a_conversation_are_one(cursor, window):
    """Generations have times; a prompt that is in both lists is there once."""
    put_item(window, PROMPTS, [{"text": "undated", "commandType": 4}, {"text": " one "}])
    put_item(
        window,
        GENERATIONS,
        [
            generation("g1", "one", CREATED),
            generation("g2", "two", CREATED + 1000),
            generation("g3", "a.py", CREATED + 1500, "apply"),
        ],
    )
    cursor.read()
    assert sessions(cursor) == [LIST]
    assert cursor.shown(LIST) == [
        *(("user", text, None) for text in ("undated", "one", "two")),
    ]
    assert cursor.facts(LIST, "project", "title", "prompts", "started_at", "ended_at") == (
        *("/code/demo", "undated", 3, CREATED, CREATED + 1000),
    )


def test_prompts_that_fell_off_the_list_are_kept(cursor, window):
    put_item(window, GENERATIONS, [generation(f"g{n}", f"p{n}", CREATED + n) for n in range(3)])
    cursor.read()
    put_item(window, GENERATIONS, [generation(f"g{n}", f"p{n}", CREATED + n) for n in range(2, 5)])
    assert cursor.read().records == 2
    assert cursor.texts(LIST) == ["p0", "p1", "p2", "p3", "p4"]


def test_prompts_that_a_chat_has_are_not_told_twice(cursor, window):
    turns = [
        {"type": "user", "id": "1", "text": "one\n"},
        {"type": "ai", "id": "2", "rawText": "x"},
    ]
    put_item(window, CHATS, {"tabs": [{"tabId": "t", "lastSendTime": CREATED, "bubbles": turns}]})
    put_item(window, PROMPTS, [{"text": "one"}, {"text": "zero"}])
    put_item(
        window,
        GENERATIONS,
        [generation("g0", "zero", CREATED - 9), generation("g1", "one", CREATED)],
    )
    cursor.read()
    assert sessions(cursor) == [LIST, "t"]
    assert cursor.texts(LIST) == ["zero"]


@pytest.mark.parametrize(
    "value",
    [
        {"allComposers": [{"type": "head", "composerId": "c", "createdAt": CREATED}]},
        {"allComposers": [], "selectedComposerIds": ["c"]},
        {"allComposers": [talk("c", message("b1", "later"))]},
    ],
)
def test_prompts_of_composers_are_kept_with_them(cursor, window, value):
    """Only what was asked before the first of them has no better place."""
    early, late = generation("g1", "early", CREATED - 5000), generation("g2", "later", CREATED + 1)
    put_item(window, COMPOSERS, value)
    put_item(window, GENERATIONS, [early, late])
    put_item(window, PROMPTS, [{"text": "later"}, {"text": "early"}])
    cursor.read()
    known = bool(value["allComposers"])  # when the first one started
    assert (LIST in sessions(cursor)) is known
    if known:
        assert cursor.texts(LIST) == ["early"]


def test_the_global_database_has_no_list_of_prompts(cursor):
    """Its composers have them."""
    (one,) = [prompt("b1", "one")]
    put_conversation(cursor.db, composer("c", [one]), [one])
    put_item(cursor.db, PROMPTS, [{"text": "two"}])
    cursor.read()
    assert sessions(cursor) == ["c"]


@pytest.mark.parametrize("value", [None, "[", {}, [None, 5, {"text": 7}, {"text": " "}], "[{}]"])
def test_a_list_of_prompts_that_is_broken(cursor, window, value):
    put_item(window, PROMPTS, value)
    put_item(window, GENERATIONS, value)
    cursor.read()
    assert sessions(cursor) == []


def test_a_time_in_seconds_or_as_text(cursor, window):
    """Whatever clock wrote it, nothing is dated before Cursor."""
    times = [CREATED // 1000, iso(CREATED), 12345]
    put_item(window, GENERATIONS, [generation(f"g{n}", f"p{n}", at) for n, at in enumerate(times)])
    cursor.read()
    assert [(e.text, e.ts) for e in cursor.entries(LIST)] == [("p0", CREATED), ("p1", CREATED)]


def test_a_global_database_beside_the_window(cursor, window):
    """The folder of a window's prompts is that of its workspace."""
    make_global(global_database(cursor.world.root)).close()
    put_item(window, GENERATIONS, [generation("g1", "one", CREATED)])
    cursor.read()
    assert cursor.facts(LIST, "project") == "/code/demo"
