"""Lines that are no messages, and messages of any shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.daemon.sources.cursor.parsed_messages import told

from sessiond.sources.cursor.agent_messages import parse_message


def test_the_end_of_a_turn() -> None:
    record = parse_message({"type": "turn_ended", "status": "success"})
    assert (record.kind, record.role, record.events) == ("turn_ended", None, [])


@pytest.mark.parametrize(
    ("more", "expected"), [({}, "error"), ({"error": {"message": "Out of rope"}}, "Out of rope")]
)
def test_a_turn_that_failed(more: dict[str, Any], expected: str) -> None:
    record = parse_message({"type": "turn_ended", "status": "error", **more})
    assert told(record) == [("system", "error", expected)]


def test_errors() -> None:
    record = parse_message({"type": "error", "error": "Out of rope", "timestamp": 1772600767})
    assert (told(record), record.ts) == ([("system", "error", "Out of rope")], 1772600767000)


def test_unknown_lines_are_told_by_their_text() -> None:
    record = parse_message({"type": "tip", "body": {"words": "Use rope"}})
    assert told(record) == [("system", "tip", "Use rope")]


@pytest.mark.parametrize(
    "value",
    [
        {"role": "user", "message": "go"},
        {"role": "user", "text": "go"},
        {"role": "user", "message": {"text": "go"}},
        {"role": "user", "content": {"type": "text", "text": "go"}},
        {"role": "user", "content": ["go"]},
        {"type": "user", "message": {"content": "go"}},
        {"message": {"role": "user", "content": "go"}},
    ],
)
def test_a_message_in_every_shape(value: dict[str, Any]) -> None:
    assert told(parse_message(value)) == [("user", None, "go")]


WORDS = st.sampled_from(
    ["user", "assistant", "tool", "system", "text", "thinking", "tool-call", "tool_result", "image"]
)
TEXTS = st.text() | st.lists(
    st.sampled_from(["<user_query>", "</user_query>", "<rules>", "<a_b>", "</a_b>", "\n", "x"])
).map("".join)
NAMES = st.sampled_from(
    [
        *("role", "type", "message", "content", "text", "toolCallId", "toolName", "args", "result"),
        *("input", "output", "status", "error", "timestamp", "model", "providerOptions", "cursor"),
        *("highLevelToolCallResult", "isSummary", "path", "command", "experimental_content"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)


@pytest.mark.slow
@given(st.dictionaries(NAMES, JSON, max_size=8))
def test_no_message_can_fail(value: dict[str, Any]) -> None:
    """Whatever types stand there, a record comes out and its events say something."""
    record = parse_message(value)
    assert all(event.text or event.type == "tool_use" for event in record.events)


@given(st.sampled_from(["user", "assistant", "tool", "system"]), st.lists(JSON, max_size=4))
def test_no_content_can_fail(role: str, content: list[Any]) -> None:
    assert parse_message({"role": role, "content": content}).role == role
