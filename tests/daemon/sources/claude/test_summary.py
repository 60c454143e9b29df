from __future__ import annotations

from typing import Any

import pytest

from sessiond.sourcekit.values import result_text, searchable_input
from sessiond.sources.claude.calls import summarize, touched_files


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Bash", {"command": "ls"}, "ls"),
        ("Bash", {"command": "ls", "description": "List"}, "ls # List"),
        ("Bash", {"command": "cat <<X\n  a\nX"}, "cat <<X a X"),
        ("Read", {"file_path": "/a", "offset": 3, "limit": 9}, "/a"),
        ("Edit", {"file_path": "/a", "old_string": "x"}, "/a (edit)"),
        ("MultiEdit", {"file_path": "/a", "edits": [{}, {}]}, "/a (2 edits)"),
        ("Write", {"file_path": "/a", "content": "package new\n"}, "/a (12 bytes)"),
        ("Write", {"file_path": "/a", "content": "é"}, "/a (2 bytes)"),
        ("NotebookEdit", {"notebook_path": "/n", "edit_mode": "insert"}, "/n (insert)"),
        ("Grep", {"pattern": "x+"}, "/x+/ in ."),
        ("Grep", {"pattern": "x+", "path": "src"}, "/x+/ in src"),
        ("Glob", {"pattern": "**/*.py", "path": "src"}, "**/*.py"),
        ("Task", {"subagent_type": "Explore", "description": "Look"}, "[Explore] Look"),
        ("Agent", {"description": "Look", "prompt": "Look around"}, "Look"),
        ("Task", {"prompt": "p" * 81}, "p" * 80 + "..."),
        ("WebFetch", {"url": "https://x.example", "prompt": "read"}, "https://x.example"),
        ("WebSearch", {"query": "knots"}, "knots"),
        (
            "TodoWrite",
            {"todos": ["?", {"status": "completed"}, {"status": "in_progress", "content": "Tie"}]},
            "1/3 done: Tie",
        ),
        ("Skill", {"skill": "review", "args": "fast"}, "review fast"),
        ("AskUserQuestion", {"questions": [{"question": "A?"}, 1, {"question": "B?"}]}, "A? / B?"),
        ("TaskUpdate", {"taskId": "3", "status": "done"}, "#3 done"),
        ("SendMessage", {"to": "ann", "message": "hi"}, "ann: hi"),
        ("mcp__x__y", {"b": {"nested": 1}, "a": 2}, "a, b"),
        ("Unheard", {}, ""),
        ("Bash", None, ""),
        ("Read", "text", ""),
        ("Bash", {"command": ["ls"]}, ""),
        ("Bash", {"command": "x" * 1001}, "x" * 1000 + "..."),
    ],
)
def test_summaries(tool: str, given: Any, expected: str) -> None:
    """Each tool's input is summed up in one line by its own rule."""
    assert summarize(tool, given) == expected


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Read", {"file_path": "/a"}, (("/a", "read"),)),
        ("MultiEdit", {"file_path": "/a"}, (("/a", "edit"),)),
        ("NotebookEdit", {"notebook_path": "/n"}, (("/n", "edit"),)),
        ("Write", {"file_path": "/a"}, (("/a", "write"),)),
        ("str_replace_based_edit_tool", {"command": "create", "path": "/a"}, (("/a", "write"),)),
        ("Grep", {"path": "/a"}, ()),
        ("Read", {"file_path": 5}, ()),
        ("Read", None, ()),
    ],
)
def test_files(tool: str, given: Any, expected: tuple[tuple[str, str], ...]) -> None:
    """Only tools that open a file name it, with what they do to it."""
    assert touched_files(tool, given) == expected


def test_searchable_input() -> None:
    """The values of an input stand one per line and in order, without their names."""
    given = {
        "text": "two\nlines",
        "flag": True,
        "ratio": 0.5,
        "none": None,
        "empty": "",
        "nested": {"a": ["x", 1, {"b": "y"}]},
    }
    assert searchable_input(given) == "two\nlines\ntrue\n0.5\nx\ny"
    assert searchable_input("bare") == "bare"
    assert searchable_input(None) == ""


@pytest.mark.parametrize(
    ("content", "text", "images"),
    [
        (" as is \n", " as is \n", 0),
        (
            [{"type": "text", "text": "a"}, {"type": "image"}, 5, {"text": "b"}, "c"],
            "a\n5\nb\nc",
            1,
        ),
        (
            [{"type": "tool_reference", "tool_name": "Kettle"}, {"text": "b"}],
            '{"type":"tool_reference","tool_name":"Kettle"}\nb',
            0,
        ),
        (
            [{"type": "audio", "data": "AAAA"}, {"data": {"cups": 2}}],
            '{"type":"audio"}\n{"data":{"cups":2}}',
            0,
        ),
        ([[{"cups": 2}], None, {}, {"type": "text"}], '[{"cups":2}]\n', 0),
        ({"cups": 2}, '{"cups":2}', 0),
        ({}, "", 0),
        ({"text": "inner"}, "inner", 0),
        ({"type": "image", "source": {"data": "AAAA"}}, "", 1),
        ({"stdout": "out", "stderr": "err", "data": "AAAA"}, "out\nerr", 0),
        (42, "42", 0),
        (True, "true", 0),
        (None, "", 0),
        ([], "", 0),
    ],
)
def test_result_shapes(content: Any, text: str, images: int) -> None:
    """A result in any shape has its text; images are counted, never shown as letters."""
    assert result_text(content) == (text, images)


def test_an_item_nested_beyond_the_stack_has_its_strings() -> None:
    item: Any = ["tea"]
    for _ in range(100_000):
        item = [item]
    assert result_text([{"steps": item}]) == ("tea", 0)
