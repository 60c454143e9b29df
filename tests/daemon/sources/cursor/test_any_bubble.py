"""Bubbles and calls of any shape: nothing raises, nothing secret is read."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount

from sessiond.sourcekit.values import strings
from sessiond.sources.cursor.bubbles import parse_bubble
from sessiond.sources.cursor.richtext import plain
from sessiond.sources.cursor.tool_calls import tool_event

FIELDS = [
    *("type", "bubbleId", "id", "text", "richText", "richtext", "rawText", "createdAt", "images"),
    *("timingInfo", "tokenCount", "modelInfo", "modelType", "thinking", "allThinkingBlocks"),
    *("thinkingDurationMs", "capabilityType", "codeBlocks", "context", "toolFormerData"),
    *("toolFormers", "toolResults"),
]
CALL_FIELDS = [
    *("tool", "name", "toolName", "toolCallId", "status", "params", "rawArgs", "args", "result"),
    *("error", "additionalData", "userDecision", "isError", "content", "output"),
]
INNER = [
    *("root", "children", "content", "uri", "fsPath", "languageId", "inputTokens", "attrs"),
    *("clientEndTime", "selectedImages", "modelName", "tools", "parameters", "todos", "path"),
    *("command", "pattern", "exitCode", "endedReason", "startedAtMs", "endedAtMs", "success"),
    *("mimeType", "effectiveUri", "output", "contents", "clientVisibleErrorMessage"),
]
NAMES = st.sampled_from([*FIELDS, *CALL_FIELDS, *INNER])
WORDS = st.sampled_from(
    [
        *("mention", "paragraph", "list", "listitem", "code", "doc", "image", "completed", "mcp--"),
        *("<user_query>", "file://", "data:image/png;base64,AA", "{", '{"a": 1}', "c1\nc2", "\n"),
        *("2026-01-01T00:00:00Z", "default", "read_file", "[[", '"', '"{}"', "\ud800", "\0"),
    ]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([1, 2, 15, 30, 1772600767123])
LEAVES = st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=20)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=6)
        | st.dictionaries(NAMES, inner, max_size=4).map(json.dumps)
    ),
    max_leaves=20,
)
CALLS = st.dictionaries(st.sampled_from(CALL_FIELDS), JSON, max_size=8)
BUBBLES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(FIELDS, JSON),
        "toolFormerData": CALLS | JSON,
        "toolFormers": st.lists(CALLS | JSON, max_size=3) | JSON,
        "toolResults": st.lists(CALLS | JSON, max_size=3) | JSON,
    },
)


@pytest.mark.slow
@settings(max_examples=amount(33, 300), deadline=None)
@given(BUBBLES, CALLS | st.none())
def test_no_bubble_raises(bubble: dict[str, Any], extra: dict[str, Any] | None) -> None:
    """Any JSON in any field gives one record that can be stored."""
    record = parse_bubble(bubble, extra_tool=extra, fallback_id="f")
    assert record.native_id
    assert record.role in {"user", "assistant", "tool"}
    for event in record.events:
        assert event.type in {"user", "assistant", "thinking", "tool_use", "system"}
        assert event.text or event.type == "tool_use"
    assert all(result.call_id for result in record.results)
    assert all(title.text for title in record.titles)


@settings(max_examples=amount(33, 300), deadline=None)
@given(CALLS)
def test_no_call_raises(data: dict[str, Any]) -> None:
    """Any JSON in any field gives one event with a name, a status and a line."""
    event = tool_event(data, "/t")
    assert event.tool
    assert event.status in {"ok", "error", "denied", "pending"}
    assert event.summary is not None
    assert "\n" not in event.summary


@settings(max_examples=amount(33, 300), deadline=None)
@given(JSON)
def test_no_document_raises(value: Any) -> None:
    """Any JSON has some text, if only an empty one."""
    assert isinstance(plain(value), str)


SECRET = "c2VjcmV0" * 20


def hidden(wrap: Any) -> dict[str, Any]:
    picture = {"type": "image", "data": SECRET, "mimeType": "image/png"}
    inside = wrap({"word": "seen", "signature": SECRET, "toolCallBinary": SECRET, "p": [picture]})
    data = {"name": "x", "toolCallBinary": SECRET, "params": inside, "result": inside}
    return {
        "thinking": {"text": "seen", "signature": SECRET},
        "allThinkingBlocks": [{"text": "seen", "signature": SECRET}],
        "images": [{"data": SECRET}],
        "text": f"seen data:image/png;base64,{SECRET}",
        "toolFormerData": {**data, "error": inside},
        "toolFormers": [{**data, "toolCallId": "c1"}],
        "toolResults": [{**data, "toolCallId": "c2"}, inside],
    }


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize(
    "wrap",
    [lambda v: v, json.dumps, lambda v: json.dumps(json.dumps(v)), lambda v: json.dumps(v)[:-1]],
    ids=["object", "string", "twice", "cut off"],
)
def test_what_nobody_may_read(kind: int, wrap: Any) -> None:
    """Binaries, signatures and images are in no text of a record, even if the JSON is cut off."""
    record = parse_bubble({"type": kind, **hidden(wrap)}, extra_tool=hidden(wrap)["toolFormerData"])
    texts = [*strings(asdict(record))]
    assert any("seen" in text for text in texts)
    assert not any(SECRET[:20] in text for text in texts)
