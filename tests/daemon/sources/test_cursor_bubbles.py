from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiond.sourcekit.base import Event, Record, Result, Title, Usage
from sessiond.sourcekit.values import strings
from sessiond.sources.cursor.bubbles import mode_of, parse_bubble
from sessiond.sources.cursor.richtext import plain, readable, unwrap
from sessiond.sources.cursor.tools import tool_event

PNG = "iVBORw0KGgo" + "A" * 60


def answer(**fields: Any) -> dict[str, Any]:
    return {"type": 2, "bubbleId": "b1", **fields}


def prompt(**fields: Any) -> dict[str, Any]:
    return {"type": 1, "bubbleId": "b1", **fields}


def told(record: Record) -> list[tuple[str, str]]:
    return [(event.type, event.text) for event in record.events]


def call(**fields: Any) -> Event:
    return tool_event({"name": "grep", **fields}, "/t")


def command(**result: Any) -> Event:
    given = json.dumps({"command": "make"})
    return tool_event(
        {
            "name": "run_terminal_command_v2",
            "status": "completed",
            "params": given,
            "result": json.dumps(result),
        },
        "/t",
    )


def paragraph(*inside: Any) -> dict[str, Any]:
    return {"type": "paragraph", "children": list(inside)}


def word(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def lexical(*nodes: Any) -> dict[str, Any]:
    return {"root": {"type": "root", "children": list(nodes)}}


# -- rich text


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (lexical(paragraph(word("a"), word("b")), paragraph(word("c"))), "ab\nc"),
        (lexical(paragraph(word("a")), paragraph(), paragraph(word("b"))), "a\n\nb"),
        (lexical(paragraph(word("a"), {"type": "linebreak"}, word("b"))), "a\nb"),
        (lexical(paragraph({"type": "link", "children": [word("site")]})), "site"),
        (
            lexical({"type": "code", "language": "py", "children": [word("x = 1")]}),
            "```py\nx = 1\n```",
        ),
        ({"type": "doc", "content": [{"type": "paragraph", "content": [word("a")]}]}, "a"),
        (
            {"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "hardBreak"}]}]},
            "",
        ),
        ({"type": "doc", "content": []}, ""),
        (lexical(), ""),
        (None, ""),
        (5, ""),
    ],
)
def test_documents_as_text(document: Any, expected: str) -> None:
    """Paragraphs are lines; breaks, links and code stay readable."""
    assert plain(document) == expected
    if isinstance(document, dict):
        assert plain(json.dumps(document)) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "mention", "text": "src/a.py", "mentionName": "a.py"}, "see @src/a.py"),
        ({"type": "mention", "text": "@a.py"}, "see @a.py"),
        ({"type": "mention", "mentionName": "a.py"}, "see @a.py"),
        ({"type": "mention", "attrs": {"id": "7", "label": "Web"}}, "see @Web"),
        ({"type": "mention"}, "see"),
    ],
)
def test_mentions(node: dict[str, Any], expected: str) -> None:
    """A mention shows what it names."""
    assert plain(lexical(paragraph(word("see "), node))) == expected


def test_lists_of_lexical() -> None:
    """Every item has a line; a nested list does not make an empty one."""
    inner = {"type": "list", "children": [{"type": "listitem", "children": [word("b")]}]}
    items = [
        {"type": "listitem", "children": [word("a")]},
        {"type": "listitem", "children": [inner]},
        {"type": "listitem", "children": [word("c")]},
    ]
    document = lexical({"type": "list", "listType": "number", "children": items})
    assert plain(document) == "1. a\n- b\n2. c"


def test_lists_of_prosemirror() -> None:
    """The paragraph inside an item stands on the bullet's line."""
    items = [
        {"type": "listItem", "content": [{"type": "paragraph", "content": [word(letter)]}]}
        for letter in "ab"
    ]
    document = {"type": "doc", "content": [{"type": "bulletList", "content": items}]}
    assert plain(document) == "- a\n- b"


@pytest.mark.parametrize("text", ["", "hello", "{not JSON", '{"a": 1}', "[1, 2]", '"quoted"'])
def test_text_that_is_no_document(text: str) -> None:
    """A string is itself unless it holds a document."""
    assert plain(text) == text


def test_deep_documents() -> None:
    """A document nested deeper than Python calls may go is read all the same."""
    node: Any = word("bottom")
    for _ in range(100_000):
        node = {"type": "quote", "children": [node]}
    assert plain({"root": node}) == "bottom"
    while isinstance(node, dict):  # or its destruction would nest as deep
        node = node.pop("children", [None])[0]


def test_documents_too_deep_to_decode() -> None:
    """A string of JSON that no decoder takes is kept as it is."""
    text = '{"root":{"children":' + "[" * 100_000
    assert plain(text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        (b'{"a": 1}', {"a": 1}),
        (json.dumps('{"a": 1}'), {"a": 1}),
        (json.dumps(json.dumps('{"a": 1}')), {"a": 1}),
        ('"word"', "word"),
        (b'"\xff"', "\ufffd"),
        ('"\\ud800"', "\ufffd"),
        ({"a": 1}, {"a": 1}),
        ("{", None),
        ("", None),
        (None, None),
        ("[" * 100_000, None),
    ],
)
def test_unwrapping(value: Any, expected: Any) -> None:
    """JSON comes out of every string around it; what is none is None."""
    assert unwrap(value) == expected


def test_images_inside_text() -> None:
    """An image in running text leaves a mark and is counted."""
    text = f"before data:image/png;base64,{PNG} between {PNG} after"
    assert readable(text) == ("before [image] between [image] after", 2)


def test_long_binaries_inside_text() -> None:
    """A word of a thousand mixed letters is a binary; one letter repeated is not."""
    assert readable("a " + "Ab1/" * 300 + " b") == ("a  b", 0)
    assert readable("x" * 5000) == ("x" * 5000, 0)


# -- bubbles


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
    """A title is at most 200 characters."""
    assert parse_bubble(prompt(text="x" * 900)).titles == [Title("x" * 200, 1)]


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


# -- tool calls


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"name": "grep"}, "grep"),
        ({"name": "mcp-demo-find"}, "mcp-demo-find"),
        ({"name": "mcp--", "rawArgs": '{"name": "find"}'}, "find"),
        ({"name": "mcp--", "params": {"tools": [{"name": "find", "parameters": "{}"}]}}, "find"),
        ({"name": "mcp--"}, "mcp--"),
        ({"tool": 38}, "tool-38"),
        ({"name": "", "tool": True}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_tool_names(data: dict[str, Any], expected: str) -> None:
    """A call goes by its name, else by its number."""
    assert tool_event(data, "").tool == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [("c1", "c1"), ("c1\nfc1", "c1"), ("\n c1 ", "c1"), ("", None), (None, None), (5, None)],
)
def test_call_ids(written: Any, expected: str | None) -> None:
    """Of two ids joined by a newline the first one counts."""
    assert call(toolCallId=written).call_id == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "completed"}, "ok"),
        ({"status": "completed", "result": "x", "error": "x"}, "ok"),
        ({"status": "completed", "error": "x"}, "error"),
        ({"status": "completed", "result": {"error": {"message": "x"}}}, "error"),
        ({"status": "completed", "result": {"rejected": True}}, "denied"),
        ({"status": "completed", "userDecision": "rejected"}, "denied"),
        ({"status": "completed", "userDecision": "accepted"}, "ok"),
        ({"status": "error"}, "error"),
        ({"status": "rejected"}, "denied"),
        ({"status": "cancelled"}, "denied"),
        ({"status": "aborted"}, "denied"),
        ({"status": "loading"}, "pending"),
        ({"status": "pending", "result": "{}"}, "pending"),
        ({"status": "loading", "result": {"output": "x", "exitCode": 0}}, "pending"),
        ({"status": "pending", "result": "x"}, "pending"),
        ({"status": "streaming", "error": "x"}, "pending"),
        ({"status": "loading", "result": "x", "userDecision": "rejected"}, "denied"),
        ({"status": "none"}, "pending"),
        ({"status": 5}, "pending"),
        ({}, "pending"),
        ({"result": "x"}, "ok"),
        ({"error": "x"}, "error"),
        ({"result": "x", "error": "x"}, "error"),
    ],
)
def test_statuses(fields: dict[str, Any], expected: str) -> None:
    """Cursor's words for how a call ended are reduced to four."""
    assert call(**fields).status == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"output": "x", "exitCodeV2": 0}, "ok"),
        ({"output": "x", "exitCodeV2": 2}, "error"),
        ({"output": "x", "exitCode": 1}, "error"),
        ({"output": "x", "exitCodeV2": 0, "exitCode": 1}, "ok"),
        ({"output": "x"}, "ok"),
        ({"output": "x", "endedReason": "REASON_EXECUTION_ABORTED"}, "denied"),
        ({"output": "x", "endedReason": "REASON_EXECUTION_FAILED"}, "error"),
    ],
)
def test_exit_codes(result: dict[str, Any], expected: str) -> None:
    """A command that ran and failed is an error, whatever the call's status is."""
    assert command(**result).status == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"params": '{"a": "x", "b": [{"c": "y"}], "n": 3, "z": null}'}, "x\ny\n3"),
        ({"params": {"a": "x"}}, "x"),
        ({"params": json.dumps('{"a": "x"}')}, "x"),
        ({"params": '{"targetFile": "x"}', "rawArgs": '{"target_file": "x"}'}, "x"),
        ({"params": '{"path": "x"}', "rawArgs": '{"file_path": "x", "new": "y"}'}, "x\ny"),
        ({"params": '{"a": ""}', "rawArgs": '{"a": "x"}'}, "x"),
        ({"params": "{}", "rawArgs": '{"a": "x"}'}, "x"),
        ({"params": '{"command": "make te'}, '{"command": "make te'),
        ({"params": '{"path": "x"}', "rawArgs": "*** Begin Patch"}, "x\n*** Begin Patch"),
        ({"params": {"command": "ls", "parsingResult": {"name": "noise"}}}, "ls"),
        ({"params": {"tools": [{"name": "t", "parameters": '{"q": "x"}'}]}}, "x"),
        ({"args": {"q": "x"}}, "x"),
        ({}, ""),
    ],
)
def test_arguments(data: dict[str, Any], expected: str) -> None:
    """The values of both sets of arguments, one per line, none twice."""
    assert tool_event(data, "").input == expected


@pytest.mark.parametrize("name", ["data", "signature", "base64"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain text", "plain text"),
        ("word", "word"),
        ("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", None),
        ("Words and 1 number, " * 20, None),
        (["a", {"data": "b"}], "a\nb"),
        ({"rows": ["a"]}, "a"),
        ("QUJj0a+/" * 8 + "QQ==", ""),
        ("\n".join(["QUJj0a+/" * 9] * 3 + ["QQ=="]), ""),
        (["QUJj0a+/" * 8], ""),
        ("AAAA" * 100, ""),
        ("0f" * 200, ""),
    ],
)
def test_arguments_that_may_be_binary(name: str, value: Any, expected: str | None) -> None:
    """Under some names there are binaries, which nobody reads, and plain text, which is kept."""
    expected = value if expected is None else expected
    assert call(params={name: value}).input == expected
    assert call(params={"a": [{name: value}]}).input == expected
    assert call(result={name: value}).output == expected


def test_a_member_that_is_cut_off() -> None:
    assert call(params='{"data": "plain te').input == '{"data": "plain te'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"params": '{"a": 1}', "rawArgs": '{"a": 1}'}, "/t/params"),
        ({"params": "{}", "rawArgs": '{"a": 1}'}, "/t/rawArgs"),
        ({"rawArgs": "text"}, "/t/rawArgs"),
        ({"params": "{}", "rawArgs": ""}, None),
    ],
)
def test_pointers(data: dict[str, Any], expected: str | None) -> None:
    """The pointer leads to the arguments that say something."""
    assert tool_event(data, "/t").pointer == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ('{"output": "out\\u001b[0m", "endedReason": "X"}', "out"),
        ('{"contents": "file", "totalLinesInFile": 9}', "file"),
        ('{"stdout": "a", "stderr": "b"}', "a\nb"),
        ('{"diff": {"chunks": [{"diffString": "+x"}]}}', "+x"),
        ('{"afterContentId": "composer.content.abc"}', ""),
        ('{"success": {"files": ["a", "b"]}}', "a\nb"),
        ('{"selectedTool": "t", "result": "{\\"content\\": [{\\"text\\": \\"x\\"}]}"}', "x"),
        ({"output": "out"}, "out"),
        ("plain", "plain"),
        ('{"output": "cut o', '{"output": "cut o'),
        (None, ""),
    ],
)
def test_outputs(result: Any, expected: str) -> None:
    """What came back, decoded, without what only Cursor needs."""
    assert call(result=result).output == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"error": '{"clientVisibleErrorMessage": "a"}'}, "a"),
        ({"error": {"modelVisibleErrorMessage": "b"}}, "b"),
        (
            {"error": {"clientVisibleErrorMessage": "a", "modelVisibleErrorMessage": "b"}},
            "a\nb",
        ),
        ({"error": "text"}, "text"),
        ({"result": "out", "error": "text"}, "out\ntext"),
        ({"result": "the text", "error": "text"}, "the text"),
        ({"error": "{}"}, ""),
    ],
)
def test_errors(fields: dict[str, Any], expected: str) -> None:
    """The messages of an error follow what came back."""
    assert call(**fields).output == expected


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        (
            "run_terminal_cmd",
            {"command": "npm test\n  now", "description": "d"},
            "npm test now # d",
        ),
        ("read_file", {"targetFile": "/a.py", "limit": 3}, "/a.py"),
        ("other", {"relativeWorkspacePath": "a.py"}, "a.py"),
        ("other", {"effectiveUri": "file:///code/a%20b.py"}, "/code/a b.py"),
        ("other", {"effectiveUri": "file:///c%3A/a.py"}, "c:/a.py"),
        ("other", {"pattern": "x+", "path": "src"}, "/x+/ in src"),
        ("grep", {"pattern": "x+"}, "/x+/ in ."),
        ("other", {"globPattern": "*.py", "targetDirectory": "src"}, "*.py in src"),
        ("other", {"query": "where", "explanation": "why"}, "where"),
        ("other", {"description": "Look", "subagentType": "explore"}, "[explore] Look"),
        ("other", {"description": "Look"}, "Look"),
        ("other", {"todos": [{"status": "completed"}, {"status": "pending"}]}, "1/2 done"),
        ("other", {"b": 1, "a": 2}, "a, b"),
        ("other", "cut o", "cut o"),
        ("other", None, ""),
    ],
)
def test_summaries(tool: str, given: Any, expected: str) -> None:
    """A call in one line, by what it names if its tool is not known."""
    assert call(name=tool, params=given).summary == expected


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("read_file_v2", {"targetFile": "a"}, (("a", "read"),)),
        ("edit_file", {"target_file": "a"}, (("a", "edit"),)),
        ("search_replace", {"file_path": "/a"}, (("/a", "edit"),)),
        ("delete_file", {"path": "a"}, (("a", "edit"),)),
        ("write", {"file_path": "/a"}, (("/a", "write"),)),
        ("read_file", {"targetFile": "a", "effectiveUri": "file:///c/a"}, (("/c/a", "read"),)),
        ("list_dir", {"path": "/a"}, ()),
        ("read_file", {}, ()),
    ],
)
def test_touched_files(tool: str, given: dict[str, Any], expected: Any) -> None:
    """A tool that reads or changes a file names it, by its whole path if it is told."""
    assert call(name=tool, params=given).files == expected


def test_files_of_a_patch() -> None:
    """The patch may stand beside arguments that name one of its files."""
    patch = "*** Update File: /a\n*** Add File: /b\n"
    event = call(name="apply_patch", params={"relativeWorkspacePath": "a"}, rawArgs=patch)
    assert event.files == (("/a", "edit"), ("/b", "write"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"additionalData": {"startedAtMs": 1772600767000, "endedAtMs": 1772600768500}}, 1500),
        ({"additionalData": {"startedAtMs": 1772600767000}}, None),
        ({"additionalData": {"startedAtMs": 1772600767000, "endedAtMs": 1772600766000}}, None),
        ({"result": {"executionTimeMs": 12.4}}, 12),
        ({"durationMs": 7}, 7),
        ({}, None),
    ],
)
def test_durations(fields: dict[str, Any], expected: int | None) -> None:
    """How long a call took, where it is told."""
    assert call(**fields).duration_ms == expected


def test_images_of_a_call() -> None:
    """Images are counted, and nothing of them is text."""
    content = [
        {"type": "text", "text": "look"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        f"data:image/png;base64,{PNG}",
        PNG,
    ]
    event = call(result=json.dumps({"content": content}))
    assert (event.output, event.images) == ("look", 3)


def test_deep_values() -> None:
    """Values nested deeper than Python calls may go are read all the same."""
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    event = call(params={"a": deep}, result={"b": deep})
    assert (event.input, event.output) == ("bottom", "bottom")


# -- anything at all

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


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
@given(CALLS)
def test_no_call_raises(data: dict[str, Any]) -> None:
    """Any JSON in any field gives one event with a name, a status and a line."""
    event = tool_event(data, "/t")
    assert event.tool
    assert event.status in {"ok", "error", "denied", "pending"}
    assert event.summary is not None
    assert "\n" not in event.summary


@settings(max_examples=100, deadline=None)
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
