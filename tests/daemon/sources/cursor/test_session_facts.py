"""Titles, models, tokens, images and times of a conversation."""

from __future__ import annotations

from tests.cursor_databases import (
    ASK,
    CREATED,
    bubble,
    composer,
    iso,
    picture,
    prompt,
    put_bubble,
    put_composer,
    put_conversation,
)
from tests.daemon.sources.cursor.cursor_home import say


def test_a_new_name_is_the_new_title(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, name="Old"), talk)
    cursor.read()
    put_composer(cursor.db, composer("c", talk, name="New"))
    cursor.read()
    assert cursor.facts("c", "title") == "New"


def test_the_title_of_a_nameless_conversation_is_its_first_prompt(cursor):
    talk = [prompt("b1", "first words"), prompt("b2", "second words", at=CREATED + 1000)]
    put_conversation(cursor.db, composer("c", talk, name=None), reversed(talk))
    cursor.read()
    assert cursor.facts("c", "title") == "first words"


def test_the_title_follows_the_prompt_that_is_replaced(cursor):
    """Nothing of what was taken back stays in sight."""
    talk = [prompt("b1", "hasty words")]
    put_conversation(cursor.db, composer("c", talk, name=None), talk)
    cursor.read()
    put_bubble(cursor.db, "c", prompt("b1", "better words"))
    cursor.read()
    assert cursor.facts("c", "title") == "better words"


def test_zero_tokens_are_unknown(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.world.sql("SELECT * FROM usage") == []


def test_tokens_are_counted_once(cursor):
    count = {"tokenCount": {"inputTokens": 30, "outputTokens": 7}}
    talk = [bubble("b1", text="one", modelInfo={"modelName": "gpt-5"}, **count)]
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_bubble(cursor.db, "c", talk[0] | {"text": "one more"})
    cursor.read()
    assert cursor.world.sql(
        "SELECT message_id, model, ts, input_tokens, output_tokens FROM usage"
    ) == [("b1", "gpt-5", CREATED, 30, 7)]


def test_tokens_that_arrive_late_are_counted(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_bubble(cursor.db, "c", talk[0] | {"tokenCount": {"inputTokens": 3, "outputTokens": 1}})
    cursor.read()
    assert cursor.world.sql("SELECT input_tokens, output_tokens FROM usage") == [(3, 1)]


def test_images_are_counted_and_not_in_the_text(cursor):
    shots = [picture(2000, seed) for seed in (1, 2)]
    shot = prompt("b1", "look at these", images=shots, context={"selectedImages": shots})
    put_conversation(cursor.db, composer("c", [shot]), [shot])
    cursor.read()
    assert [(e.text, e.images) for e in cursor.entries("c")] == [("look at these", 2)]


def test_an_image_alone_is_a_prompt(cursor):
    shot = prompt("b1", "", images=[picture(500)])
    put_conversation(cursor.db, composer("c", [shot]), [shot])
    cursor.read()
    assert [(e.type, e.text, e.images) for e in cursor.entries("c")] == [("user", "[image]", 1)]


def test_the_mode_of_a_conversation(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, unifiedMode="plan"), talk)
    put_conversation(cursor.db, composer("d", talk, unifiedMode=ASK), talk)
    cursor.read()
    assert cursor.facts("c", "mode") == "plan"
    assert cursor.facts("d", "mode") == "ask"


def test_a_model_that_cursor_chose_is_unknown(cursor):
    talk = [prompt("b1", "one")]
    config = {"modelName": "default"}
    put_conversation(cursor.db, composer("c", talk, modelConfig=config), talk)
    cursor.read()
    assert cursor.facts("c", "models") == "[]"


def test_a_bubble_without_a_time_has_that_of_its_header(cursor):
    (one,) = say("one")
    del one["createdAt"]
    heads = [{"bubbleId": "b1", "type": 2, "createdAt": iso(CREATED + 777)}]
    value = composer("c") | {"fullConversationHeadersOnly": heads}
    put_conversation(cursor.db, value, [one])
    cursor.read()
    assert [e.ts for e in cursor.entries("c")] == [CREATED + 777]


def test_a_bubble_without_a_time_gets_that_of_the_composer_that_comes_later(cursor):
    (one,) = say("one")
    del one["createdAt"]
    put_bubble(cursor.db, "c", one)
    cursor.read()
    put_composer(cursor.db, composer("c", [one]))
    cursor.read()
    assert [e.ts for e in cursor.entries("c")] == [CREATED]


def test_a_bubble_that_loses_its_time_goes_to_the_end(cursor):
    """Headers do not name it, and a time that it no longer tells does not count."""
    talk = say("one", "two")
    put_conversation(cursor.db, composer("c", talk[1:]), talk)
    cursor.read()
    put_bubble(cursor.db, "c", {k: v for k, v in talk[0].items() if k != "createdAt"})
    cursor.read()
    assert cursor.texts("c") == ["two", "one"]
