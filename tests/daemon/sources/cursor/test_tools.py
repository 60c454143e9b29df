"""What one tool call of a bubble says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.daemon.sources.cursor.stored_bubbles import PNG, call, command

from sessiond.sources.cursor.tool_calls import tool_event


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
