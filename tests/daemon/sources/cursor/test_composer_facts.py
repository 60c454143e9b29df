"""What a composer records about its conversation beside the messages."""

from __future__ import annotations

import json

import pytest
from tests.cursor_databases import (
    CREATED,
    bubble,
    composer,
    prompt,
    put_bubble,
    put_composer,
    put_conversation,
    tool,
)
from tests.daemon.sources.cursor.cursor_home import say

TOKENS = {"tokenCount": {"inputTokens": 1000, "outputTokens": 100}}


def spent(cursor):
    return cursor.world.sql(
        "SELECT model, input_tokens, ts, cost_usd, cost_source FROM usage ORDER BY ts, id"
    )


def total(cursor):
    done = cursor.world.run("sess", "stats", "--json", "--no-sync", check=0)
    found = json.loads(done.stdout)
    return found["requests"], found["cost_usd"], found["unpriced_requests"]


# -- models


@pytest.mark.parametrize("first", ["bubble", "composer"])
def test_a_response_without_a_model_has_that_of_its_composer(cursor, first):
    """Whatever is written first; a response that names a model keeps it."""
    talk = [
        bubble("b1", text="one", modelInfo={"modelName": "default"}, **TOKENS),
        bubble("b2", text="two", at=CREATED + 1, modelInfo={"modelName": "gpt-5"}, **TOKENS),
    ]
    value = composer("c", talk, modelConfig={"modelName": "claude-sonnet-4-5"})
    if first == "composer":
        put_composer(cursor.db, value)
        cursor.read()
    for one in talk:
        put_bubble(cursor.db, "c", one)
    cursor.read()
    put_composer(cursor.db, value)
    cursor.read()
    assert [(model, source) for model, _, _, _, source in spent(cursor)] == [
        ("claude-sonnet-4-5", "computed"),
        ("gpt-5", "computed"),
    ]


def test_a_model_that_nobody_recorded_stays_unknown(cursor):
    talk = [bubble("b1", text="one", **TOKENS)]
    put_conversation(cursor.db, composer("c", talk, modelConfig={"modelName": "default"}), talk)
    cursor.read()
    assert spent(cursor) == [(None, 1000, CREATED, None, "unknown")]


# -- costs


def test_a_recorded_cost_belongs_to_the_last_response(cursor):
    """There are no token counts, so no response has a row: the cost has one, and moves with it."""
    talk = say("one", "two")
    usage = {"usageData": {"gpt-5": {"costInCents": 245, "amount": 8}}}
    put_conversation(cursor.db, composer("c", talk[:1], **usage), talk[:1])
    cursor.read()
    assert spent(cursor) == [("gpt-5", 0, CREATED + 1000, 2.45, "recorded")]
    usage["usageData"]["gpt-5"]["costInCents"] = 300
    put_conversation(cursor.db, composer("c", talk, **usage), talk)
    cursor.read()
    assert spent(cursor) == [("gpt-5", 0, CREATED + 2000, 3.0, "recorded")]
    assert total(cursor) == (1, 3.0, 0)


@pytest.mark.parametrize("late", [False, True])
def test_a_recorded_cost_replaces_computed_ones_of_its_model(cursor, late):
    """Requests are those with token counts, not more; also if the cost comes last."""
    one = {"modelInfo": {"modelName": "gpt-5"}, **TOKENS}
    other = {"modelInfo": {"modelName": "claude-sonnet-4-5"}, **TOKENS}
    talk = [
        bubble("b1", text="one", **one),
        bubble("b2", text="two", at=CREATED + 1, **one),
        bubble("b3", text="three", at=CREATED + 2, **other),
    ]
    value = composer("c", talk)
    if late:
        put_conversation(cursor.db, value, talk)
        cursor.read()
    put_conversation(
        cursor.db, value | {"usageData": {"gpt-5": {"costInCents": 12.5, "amount": 2}}}, talk
    )
    cursor.read()
    assert [(model, cost, source) for model, _, _, cost, source in spent(cursor)] == [
        ("gpt-5", 0.0, "recorded"),
        ("gpt-5", 0.125, "recorded"),
        ("claude-sonnet-4-5", None, "computed"),
    ]
    assert total(cursor)[0] == 3


def test_the_cost_of_an_unnamed_model_is_that_of_the_composer(cursor):
    """`default` means that Cursor chose; two names of one model are added up."""
    talk = say("one")
    costs = {"default": {"costInCents": 100}, "composer-2.5": {"costInCents": 50}}
    put_conversation(cursor.db, composer("c", talk, usageData=costs), talk)
    cursor.read()
    assert [(model, cost) for model, _, _, cost, _ in spent(cursor)] == [("composer-2.5", 1.5)]


@pytest.mark.parametrize("cents", [0, -5, "12", None, True, 1e300])
def test_a_cost_that_is_none(cursor, cents):
    """Zero: the plan covered it, which says nothing about what it would cost."""
    talk = say("one")
    usage = {"usageData": {"gpt-5": {"costInCents": cents, "amount": 1}}}
    put_conversation(cursor.db, composer("c", talk, **usage), talk)
    cursor.read()
    assert spent(cursor) == []


# -- branches


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"createdOnBranch": "main"}, "main"),
        (
            {
                "createdOnBranch": "main",
                "trackedGitRepos": [{"repoPath": "/code", "branches": [{"branchName": "fix"}]}],
            },
            "fix",
        ),
        (
            {
                "trackedGitRepos": [
                    {
                        "branches": [
                            {"branchName": "new", "lastInteractionAt": CREATED + 5},
                            {"branchName": "old", "lastInteractionAt": CREATED},
                        ]
                    }
                ]
            },
            "new",
        ),
        ({"trackedGitRepos": [{"branches": [{"branchName": " "}, 5]}, None]}, None),
    ],
)
def test_the_branch_is_the_one_used_last(cursor, more, expected):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, **more), talk)
    cursor.read()
    assert cursor.facts("c", "git_branch") == expected


# -- notes


def test_the_todos_of_a_conversation_are_shown_at_its_end(cursor):
    """They change in place, stay last, and have no time of their own."""
    talk = say("one", "two")
    todos = [
        {"id": "1", "content": "read it", "status": "completed"},
        {"id": "2", "content": "fix it", "status": "in_progress"},
        {"id": "3", "content": "ship it", "status": "pending"},
    ]
    put_conversation(cursor.db, composer("c", talk[:1], todos=todos), talk[:1])
    cursor.read()
    todos[1]["status"] = "completed"
    put_conversation(cursor.db, composer("c", talk, todos=todos), talk)
    cursor.read()
    entries = cursor.entries("c")
    assert [(e.type, e.label, e.text) for e in entries] == [
        ("assistant", None, "one"),
        ("assistant", None, "two"),
        ("system", "todo", "[x] read it\n[x] fix it\n[ ] ship it"),
    ]
    assert entries[-1].ts == CREATED + 2000
    assert cursor.facts("c", "ended_at") == CREATED + 2000


def test_todos_without_messages_are_no_conversation(cursor):
    put_composer(cursor.db, composer("c", todos=[{"content": "nothing yet"}]))
    cursor.read()
    assert cursor.world.sql("SELECT count(*) FROM sessions") == [(0,)]


@pytest.mark.parametrize(
    "summary",
    [
        {"summary": "in short", "lastBubbleId": "b1"},
        {"summary": {"summary": "in short", "truncationLastBubbleIdInclusive": "b1"}},
    ],
)
def test_the_summary_of_a_conversation_follows_what_it_covers(cursor, summary):
    talk = say("one", "two")
    put_conversation(cursor.db, composer("c", talk, latestConversationSummary=summary), talk)
    cursor.read()
    assert cursor.shown("c") == [
        ("assistant", "one", None),
        ("summary", "in short", None),
        ("assistant", "two", None),
    ]


def test_notes_are_restored_and_read_elsewhere(cursor, tmp_path):
    talk = say("one")
    more = {"todos": [{"content": "later"}], "latestConversationSummary": {"summary": "in short"}}
    put_conversation(cursor.db, composer("c", talk, **more), talk)
    cursor.read()
    file = tmp_path / "export.jsonl"
    cursor.world.run("sess", "restore", "c", "-o", file, check=0)
    other = type(cursor)(type(cursor.world)(tmp_path / "other"))
    other.world.run("sessiond", "sync", file, check=0)
    assert other.texts("c") == cursor.texts("c") == ["one", "in short", "[ ] later"]


# -- subagents


def test_a_subagent_hangs_at_the_call_that_started_it(cursor):
    """Cursor writes its own call id and the model's, in both places."""
    call = tool("b1", "task_v2", params={"description": "look", "prompt": "look at it"})
    info = {
        "parentComposerId": "c",
        "subagentTypeName": "explore",
        "toolCallId": "call_b1\nfc_b1",
    }
    talk = say("found it", at=CREATED + 10)
    put_conversation(cursor.db, composer("c", [call], subagentComposerIds=["d"]), [call])
    put_conversation(cursor.db, composer("d", talk, subagentInfo=info), talk)
    cursor.read()
    assert cursor.parent("d") == "c"
    assert cursor.facts("d", "kind", "call_id", "agent_type") == ("subagent", "call_b1", "explore")
    (entry,) = cursor.entries("c")
    assert entry.call_id == "call_b1"


# -- times of versions that date only some bubbles


def test_times_of_bubbles_that_only_have_timings(cursor):
    """A prompt was sent when its answer was requested; a call has the time of what precedes it."""
    talk = [prompt("b1", "one"), bubble("b2", text="two"), tool("b3"), prompt("b4", "three")]
    talk += [bubble("b5", text="four"), prompt("b6", "five")]
    for one in talk:
        del one["createdAt"]
    talk[1]["timingInfo"] = {"clientStartTime": 1234.5, "clientRpcSendTime": CREATED + 1000,
                             "clientSettleTime": CREATED + 9000}  # fmt: skip
    talk[4]["timingInfo"] = {"clientRpcSendTime": 0, "clientEndTime": CREATED + 60_000}
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert [e.ts - CREATED for e in cursor.entries("c")] == [
        *(1000, 1000, 1000, 60_000, 60_000, 60_000),
    ]
    assert cursor.facts("c", "started_at", "ended_at") == (CREATED + 1000, CREATED + 60_000)
