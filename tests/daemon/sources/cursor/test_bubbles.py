"""What one bubble says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.daemon.sources.cursor.stored_bubbles import (
    answer,
    lexical,
    paragraph,
    prompt,
    told,
    word,
)

from sessiond.sourcekit.base import Result, Title, Usage
from sessiond.sources.cursor.bubbles import mode_of, parse_bubble


@pytest.mark.parametrize(
    ("bubble", "role"),
    [
        ({"type": 1, "text": "a"}, "user"),
        ({"type": 2, "text": "a"}, "assistant"),
        ({"type": "user", "text": "a"}, "user"),
        ({"type": "ai", "text": "a"}, "assistant"),
        ({"type": 9}, "assistant"),
        ({}, "assistant"),
        ({"type": 2, "text": " ", "toolResults": [{"result": "x"}]}, "tool"),
        ({"type": 2, "text": "a", "toolResults": [{"result": "x"}]}, "assistant"),
        ({"type": 2, "toolResults": []}, "assistant"),
    ],
)
def test_roles(bubble: dict[str, Any], role: str) -> None:
    """Type 1 is the user, all else the assistant; results without text are a tool's."""
    record = parse_bubble(bubble)
    assert (record.kind, record.role) == (role, role)


def test_native_ids() -> None:
    """A bubble is known by its own id, else by the one that its key gives."""
    assert parse_bubble({"bubbleId": "b"}, fallback_id="k").native_id == "b"
    assert parse_bubble({"id": "i"}, fallback_id="k").native_id == "i"
    assert parse_bubble({"bubbleId": ""}, fallback_id="k").native_id == "k"
    assert parse_bubble({}).native_id is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"createdAt": "2026-03-04T05:06:07Z"}, 1772600767000),
        ({"createdAt": 1772600767123}, 1772600767123),
        ({"timingInfo": {"clientRpcSendTime": 1772600767123}}, 1772600767123),
        ({"timingInfo": {"clientSettleTime": 1772600767124}}, 1772600767124),
        ({"timingInfo": {"clientEndTime": 1772600767125}}, 1772600767125),
        ({"timingInfo": {"clientRpcSendTime": 4745281.3}}, None),
        ({"timingInfo": {"clientStartTime": 1772600767123}}, None),
        ({}, None),
    ],
)
def test_times(fields: dict[str, Any], expected: int | None) -> None:
    """The bubble's own time, else the client's; a performance clock tells none."""
    record = parse_bubble(answer(**fields))
    assert (record.ts, record.ts_from, record.warnings) == (expected, None, [])


def test_a_bad_time_is_told() -> None:
    """A time that cannot be read is a warning, and the next best is taken."""
    record = parse_bubble(answer(createdAt="?", timingInfo={"clientEndTime": 1772600767125}))
    assert (record.ts, record.warnings) == (1772600767125, ["bad timestamp"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"modelInfo": {"modelName": "gpt-5"}}, "gpt-5"),
        ({"modelType": "gpt-4"}, "gpt-4"),
        ({"modelInfo": {"modelName": "default"}, "modelType": "Auto"}, None),
        ({"modelInfo": {"modelName": ""}}, None),
        ({"modelInfo": "gpt-5"}, None),
    ],
)
def test_models(fields: dict[str, Any], expected: str | None) -> None:
    """`default` and `auto` name no model."""
    assert parse_bubble(answer(**fields)).model == expected


def test_usage() -> None:
    """Counts of tokens are the bubble's own."""
    counts = {"inputTokens": 1200, "outputTokens": 80}
    record = parse_bubble(answer(tokenCount=counts, modelInfo={"modelName": "m"}))
    assert record.usage == Usage("b1", None, "m", None, 1200, 80, 0, 0, 0)


@pytest.mark.parametrize("counts", [{"inputTokens": 0, "outputTokens": 0}, {}, None, 5, "x"])
def test_zeros_tell_no_usage(counts: Any) -> None:
    """Later builds write zeros for what they do not know."""
    assert parse_bubble(answer(tokenCount=counts)).usage is None


def test_a_prompt_gives_a_title() -> None:
    """What the user said is an event and, in one line, a title."""
    record = parse_bubble(prompt(text=" Fix\nthe loop "))
    assert told(record) == [("user", "Fix\nthe loop")]
    assert record.titles == [Title("Fix the loop", 1)]


def test_long_prompts_give_short_titles() -> None:
    """A title has at most 200 characters and ends in an ellipsis where it is cut."""
    assert parse_bubble(prompt(text="x" * 900)).titles == [Title("x" * 199 + "…", 1)]


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "", "richText": json.dumps(lexical(paragraph(word("said"))))},
        {"richText": lexical(paragraph(word("said")))},
        {"richtext": "said"},
        {"text": None, "rawText": "said"},
        {"text": "said", "richText": "other", "rawText": "third"},
    ],
)
def test_where_the_text_is(fields: dict[str, Any]) -> None:
    """Plain text counts before rich text, and that before the raw one."""
    assert told(parse_bubble(prompt(**fields))) == [("user", "said")]


def test_json_that_was_typed() -> None:
    """A document that a user typed is text, not a document."""
    text = json.dumps(lexical(paragraph(word("x"))))
    assert told(parse_bubble(prompt(text=text))) == [("user", text)]


def test_injected_context() -> None:
    """What Cursor puts around the words of the user is told apart and gives no title."""
    record = parse_bubble(prompt(text="<info>os</info>\n<user_query>\nFix it\n</user_query>"))
    assert told(record) == [("system", "<info>os</info>"), ("user", "Fix it")]
    assert record.events[0].label == "context"
    assert record.titles == [Title("Fix it", 1)]


@pytest.mark.parametrize(
    ("fields", "images"),
    [
        ({"images": [{}, {}]}, 2),
        ({"context": {"selectedImages": [{}]}}, 1),
        ({"images": [{}], "context": {"selectedImages": [{}]}}, 1),
    ],
)
def test_a_prompt_of_images(fields: dict[str, Any], images: int) -> None:
    """Images alone are an event without a title; one listed twice is one."""
    record = parse_bubble(prompt(**fields))
    assert [(e.type, e.text, e.images) for e in record.events] == [("user", "[image]", images)]
    assert record.titles == []


def test_an_empty_bubble() -> None:
    """A bubble that says nothing is a record without events."""
    assert parse_bubble(answer(text="", thinking={"text": ""})).events == []


@pytest.mark.parametrize(
    "fields",
    [
        {"thinking": {"text": "hm", "signature": "s"}},
        {"thinking": "hm"},
        {"allThinkingBlocks": [{"text": "hm"}]},
        {"allThinkingBlocks": ["hm"]},
        {"capabilityType": 30, "text": "hm"},
        {"capabilityType": 30, "text": "hm", "thinking": {"text": "hm"}},
    ],
)
def test_thinking(fields: dict[str, Any]) -> None:
    """A thought is told once, with its duration, wherever the bubble keeps it."""
    (event,) = parse_bubble(answer(thinkingDurationMs=2292, **fields)).events
    assert (event.type, event.text, event.duration_ms) == ("thinking", "hm", 2292)


def test_several_thoughts() -> None:
    """Blocks of thought are one event with a blank line between them."""
    record = parse_bubble(answer(allThinkingBlocks=[{"thinking": "a"}, 5, {"text": "b"}]))
    assert told(record) == [("thinking", "a\n\nb")]


def test_the_order_of_events() -> None:
    """A thought comes before the words, and these before the call."""
    record = parse_bubble(answer(toolFormerData={"name": "x"}, text="words", thinking="hm"))
    assert [event.type for event in record.events] == ["thinking", "assistant", "tool_use"]


def test_code_that_the_text_does_not_show() -> None:
    """A block of code is added to the text unless it is there."""
    blocks = [
        {"content": "shown", "languageId": "py"},
        {"content": "x = 1\n", "languageId": "py", "uri": {"fsPath": "/code/demo/a.py"}},
        {"content": "```"},
        {"content": " "},
        {},
        5,
    ]
    record = parse_bubble(answer(text="it is shown", codeBlocks=blocks))
    assert told(record) == [
        ("assistant", "it is shown\n\n```py /code/demo/a.py\nx = 1\n```\n\n````\n```\n````")
    ]


def test_calls_from_every_place() -> None:
    """A bubble's own call and those in its list are told, each id once."""
    record = parse_bubble(
        answer(
            toolFormerData={"name": "a", "toolCallId": "c1"},
            toolFormers=[{"name": "b"}, {"name": "c", "toolCallId": "c1"}, {"name": "d"}, 5],
        )
    )
    assert [event.tool for event in record.events] == ["a", "b", "d"]


def test_a_call_kept_outside_its_bubble() -> None:
    """An old composer's call is the bubble's, with its own pointer, unless the bubble has one."""
    kept = {"name": "read_file", "rawArgs": '{"target_file": "a"}'}
    (event,) = parse_bubble(answer(), extra_tool=kept).events
    assert (event.tool, event.pointer) == ("read_file", "/tool/rawArgs")
    record = parse_bubble(answer(toolFormerData={"name": "own"}), extra_tool=kept)
    assert [event.tool for event in record.events] == ["own"]


@pytest.mark.parametrize("stub", [{}, {"additionalData": {}}, {"tool": 0, "params": "{}"}, None, 5])
def test_stubs_of_calls(stub: Any) -> None:
    """User messages may carry an empty call: nothing was called."""
    assert told(parse_bubble(prompt(text="hi", toolFormerData=stub))) == [("user", "hi")]


def test_results_of_calls() -> None:
    """Results in a bubble wait for the calls that they name; the others are notices."""
    outcomes = [
        {"toolCallId": "c1\nfc1", "result": '{"output": "fine"}'},
        {"toolCallId": "c2", "content": "bad", "isError": True},
        {"toolCallId": "c3", "status": "loading", "error": "bad"},
        {"toolCallId": "c4", "status": "loading"},
        {"result": "whose"},
        "bare",
    ]
    record = parse_bubble(answer(toolResults=outcomes), pointer="/b")
    assert record.results == [
        Result("c1", "fine", "ok", pointer="/b/toolResults/0/result"),
        Result("c2", "bad", "error", pointer="/b/toolResults/1/content"),
        Result("c3", "bad", "error", pointer="/b/toolResults/2/error"),
        Result("c4", "", "ok", pointer="/b/toolResults/3"),
    ]
    assert told(record) == [("system", "whose"), ("system", "bare")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, "ask"), (2, "agent"), (5, "plan"), ("edit", "edit"), (9, None), (True, None), ("", None)],
)
def test_modes(value: Any, expected: str | None) -> None:
    """Numbers of modes have names."""
    assert mode_of(value) == expected
