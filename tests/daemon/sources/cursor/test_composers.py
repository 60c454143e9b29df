from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount

from sessiond.sources.cursor.composers import Composer, read_composer, read_header, unwrap


def composer(**facts: Any) -> Composer:
    found = read_composer(json.dumps(facts), "c1")
    assert found is not None
    return found


def test_a_composer_that_tells_everything() -> None:
    """Every field is read from the place where Cursor keeps it."""
    found = composer(
        name=" Demo ",
        subtitle="Edited a.py",
        createdAt=1772600767000,
        lastUpdatedAt=1772600768000,
        status="completed",
        unifiedMode="agent",
        modelConfig={"modelName": "composer-2"},
        createdOnBranch="main",
        fullConversationHeadersOnly=[{"bubbleId": "b1", "createdAt": "2026-03-04T05:06:07Z"}],
        subagentInfo={
            "parentComposerId": "p",
            "subagentTypeName": "explore",
            "toolCallId": "call\nfc",
        },
        subagentComposerIds=["s1", "s2"],
        subComposerIds=["s2", "s3"],
        isDraft=True,
        isEphemeral=True,
        isArchived=True,
        workspaceIdentifier={"id": "w"},
        trackedGitRepos=[{"repoPath": "/code/demo"}, {}, 5],
    )
    assert found == Composer(
        "c1",
        title="Demo",
        created_at=1772600767000,
        updated_at=1772600768000,
        mode="agent",
        model="composer-2",
        branch="main",
        order=["b1"],
        header_times={"b1": 1772600767000},
        parent="p",
        parent_call="call",
        agent_type="explore",
        subagents=["s1", "s2", "s3"],
        workspace={"id": "w"},
        repos=["/code/demo"],
    )


def test_a_composer_that_tells_nothing() -> None:
    """What is missing is None, empty or false."""
    assert composer() == Composer("c1")


@pytest.mark.parametrize("value", [None, "", "{", b"\xff", "[]", "5", '"text"', 5])
def test_rows_without_a_composer(value: Any) -> None:
    """A row that is empty or no object holds no composer."""
    assert read_composer(value, "c1") is None


@pytest.mark.parametrize(
    "value", ['{"name": "x"}', b'{"name": "x"}', json.dumps('{"name": "x"}'), {"name": "x"}]
)
def test_notations_of_a_row(value: Any) -> None:
    """Text, bytes and JSON inside a string are read alike."""
    assert read_composer(value, "c1") == Composer("c1", title="x")


def test_bad_bytes_are_replaced() -> None:
    """A broken character does not cost the conversation."""
    assert read_composer(b'{"name": "x\xff"}', "c1") == Composer("c1", title="x\ufffd")


def test_strings_are_unwrapped_three_times() -> None:
    """JSON in a string in a string in a string is read; one more string is left as it is."""
    value = '{"a": 1}'
    for _ in range(3):
        value = json.dumps(value)
    assert unwrap(value) == {"a": 1}
    assert unwrap(json.dumps(value)) == '{"a": 1}'


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"lastUpdatedAt": 1772600768000}, 1772600768000),
        ({"conversationCheckpointLastUpdatedAt": 1772600769000}, 1772600769000),
        ({"lastUpdatedAt": "soon"}, None),
        ({"lastUpdatedAt": 0}, None),
    ],
)
def test_the_last_change(facts: dict[str, Any], expected: int | None) -> None:
    """Without a time of change that of the last checkpoint counts."""
    assert composer(**facts).updated_at == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"unifiedMode": "agent", "forceMode": "edit"}, "agent"),
        ({"unifiedMode": 5}, "plan"),
        ({"forceMode": "edit"}, "edit"),
        ({"unifiedMode": []}, None),
    ],
)
def test_modes(facts: dict[str, Any], expected: str | None) -> None:
    """The mode of today counts before the older one."""
    assert composer(**facts).mode == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"modelConfig": {"modelName": "gpt-5"}, "usageData": {"o3": {}}}, "gpt-5"),
        ({"modelConfig": {"modelName": "default"}, "usageData": {"o3": {}}}, "o3"),
        ({"modelConfig": {"modelName": "auto"}}, None),
        ({"usageData": {"o3": {}, "gpt-5": {}}}, None),
        ({"usageData": {"default": {}}}, None),
    ],
)
def test_models(facts: dict[str, Any], expected: str | None) -> None:
    """The chosen model, else the only one that was paid for."""
    assert composer(**facts).model == expected


def test_the_order_of_bubbles() -> None:
    """Headers give the order; those without an id and repetitions are left out."""
    headers = [{"bubbleId": "z"}, {"bubbleId": ""}, "a", {"bubbleId": "z"}, {"bubbleId": 5}, None]
    assert composer(fullConversationHeadersOnly=headers).order == ["z", "a"]


def test_bubbles_inside_the_composer() -> None:
    """The oldest composers hold their bubbles, and the calls apart from them."""
    conversation = [
        {"bubbleId": "1", "type": 1, "text": "hello"},
        {"bubbleId": "3", "type": 2},
        {"type": 2},
        5,
        {"bubbleId": "1", "text": "again"},
    ]
    tools = {"3": {"name": "read_file"}, "1": 5}
    capabilities = [5, {"type": 14}, {"type": 15, "data": {"bubbleDataMap": json.dumps(tools)}}]
    assert composer(conversation=conversation, capabilities=capabilities).inline == [
        ("1", conversation[0], None),
        ("3", conversation[1], {"name": "read_file"}),
        ("bubble-2", conversation[2], None),
    ]


def test_calls_that_are_no_string() -> None:
    """The calls may also be an object."""
    capabilities = [{"type": 15, "data": {"bubbleDataMap": {"1": {"name": "x"}}}}]
    found = composer(conversation=[{"bubbleId": "1"}], capabilities=capabilities)
    assert found.inline == [("1", {"bubbleId": "1"}, {"name": "x"})]


def test_the_map_of_bubbles() -> None:
    """Of the map's bubbles those count that are in the order, and in the order's order."""
    found = composer(
        fullConversationHeadersOnly=[{"bubbleId": "b"}, {"bubbleId": "a"}, {"bubbleId": "c"}],
        conversationMap={"a": {"text": "A"}, "b": {"text": "B"}, "x": {"text": "X"}, "c": 5},
    )
    assert found.inline == [("b", {"text": "B"}, None), ("a", {"text": "A"}, None)]


def test_headers() -> None:
    """A row of the header table tells its own id and a part of the composer."""
    facts = {
        "type": "head",
        "composerId": "c2",
        "name": "Demo",
        "unifiedMode": "agent",
        "isArchived": False,
        "workspaceIdentifier": {"id": "w"},
        "subagentInfo": {"parentComposerId": "c1", "toolCallId": "call"},
    }
    expected = Composer(
        "c2", title="Demo", mode="agent", workspace={"id": "w"}, parent="c1", parent_call="call"
    )
    assert read_header(json.dumps(facts)) == expected
    assert read_header(facts) == expected


@pytest.mark.parametrize("value", [None, "{", "[]", "{}", {"composerId": ""}, {"composerId": 5}])
def test_headers_of_nobody(value: Any) -> None:
    """A header without an id belongs to no composer."""
    assert read_header(value) is None


NAMES = st.sampled_from(
    [
        *("name", "subtitle", "createdAt", "lastUpdatedAt", "status", "unifiedMode", "forceMode"),
        *("modelConfig", "modelName", "usageData", "createdOnBranch", "conversation", "data"),
        *("fullConversationHeadersOnly", "conversationMap", "capabilities", "bubbleDataMap"),
        *("subagentInfo", "toolCallId", "parentComposerId", "subagentComposerIds", "isDraft"),
        *("subComposerIds", "trackedGitRepos", "repoPath", "bubbleId", "type", "composerId"),
    ]
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=9)
)
JSON = st.recursive(
    LEAVES | st.just(15),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)


@pytest.mark.slow
@settings(max_examples=amount(50, 450), deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=10) | JSON)
def test_no_composer_raises(value: Any) -> None:
    """Any JSON in any field gives a composer or none."""
    for given_value in (value, json.dumps(value), json.dumps(json.dumps(value))):
        found = read_composer(given_value, "c1")
        assert found is None or found.composer_id == "c1"
        header = read_header(given_value)
        assert header is None or header.composer_id


@given(st.text(max_size=50) | st.binary(max_size=50))
def test_no_row_raises(value: str | bytes) -> None:
    """Whatever a row holds, it is read or it is not."""
    found = read_composer(value, "c1")
    assert found is None or found.composer_id == "c1"
