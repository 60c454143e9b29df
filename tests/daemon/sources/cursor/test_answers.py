"""What the agent said and called in a chat or transcript."""

from __future__ import annotations

from typing import Any

import pytest
from tests.daemon.sources.cursor.parsed_messages import call, line, result, said, told

from sessiond.sourcekit.base import Event, Result
from sessiond.sources.cursor.agent_messages import parse_message
from sessiond.sources.cursor.summaries import files_of_call, summarize_call

# -- what the agent said


def test_an_answer() -> None:
    assert told(said("assistant", " tied ")) == [("assistant", None, "tied")]


@pytest.mark.parametrize("name", ["thinking", "reasoning"])
@pytest.mark.parametrize("key", ["text", "thinking"])
def test_thoughts(name: str, key: str) -> None:
    block = {"type": name, key: "hm", "signature": "s"}
    assert told(said("assistant", block)) == [("thinking", None, "hm")]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "[REDACTED]"},
        {"type": "text", "text": "\n\n[REDACTED]\n"},
        {"type": "thinking", "thinking": "[REDACTED]"},
        {"type": "redacted-reasoning", "data": "aGk="},
        {"type": "redacted_thinking", "text": "x"},
        {"type": "text", "text": 5},
        {"type": "text"},
    ],
)
def test_what_is_hidden_says_nothing(block: dict[str, Any]) -> None:
    assert said("assistant", block).events == []


def test_a_hidden_tail_is_cut_off() -> None:
    assert told(said("assistant", "Tied.\n\n[REDACTED]")) == [("assistant", None, "Tied.")]


def test_the_word_itself_may_be_written() -> None:
    text = "[REDACTED] stands for a secret"
    assert told(said("assistant", text)) == [("assistant", None, text)]


def test_unknown_blocks_are_told_by_their_text() -> None:
    block = {"type": "custom_block", "text": "News", "providerOptions": {"cursor": {"a": "b"}}}
    assert told(said("assistant", block)) == [("system", "custom_block", "News")]


def test_the_system_prompt_is_context() -> None:
    record = parse_message({"role": "system", "content": "You are an agent"})
    assert told(record) == [("system", "context", "You are an agent")]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"model": "composer-2"}, "composer-2"),
        ({"model": "default"}, None),
        ({"providerOptions": {"cursor": {"modelName": "composer-2"}}}, "composer-2"),
        ({}, None),
    ],
)
def test_the_model(more: dict[str, Any], expected: str | None) -> None:
    assert said("assistant", "x", **more).model == expected


# -- tools


def test_a_call_of_a_chat_waits_for_its_result() -> None:
    args = {"command": "ls -l", "description": "List", "timeout": 5}
    record = said("assistant", "ok", call(args=args))
    assert record.events[1] == Event(
        "tool_use",
        tool="Shell",
        status="pending",
        summary="ls -l # List",
        input="ls -l\nList\n5",
        call_id="c1",
        pointer="/content/1/args",
        kind="shell",
    )


def test_a_call_without_an_id_waits_for_nothing() -> None:
    """No result ever comes, so nobody can say how it went."""
    block = {"type": "tool_use", "name": "Read", "input": {"path": "/code/demo/a.py"}}
    assert line("assistant", block).events == [
        Event(
            "tool_use",
            tool="Read",
            summary="/code/demo/a.py",
            input="/code/demo/a.py",
            pointer="/message/content/0/input",
            files=(("/code/demo/a.py", "read"),),
            kind="read",
        )
    ]


def test_pointers_begin_where_the_message_is() -> None:
    message = {"role": "assistant", "content": [call()]}
    record = parse_message(message, pointer="/value")
    assert record.events[0].pointer == "/value/content/0/args"


def test_arguments_in_a_string() -> None:
    record = said("assistant", call(args='{"command": "ls"}'))
    assert (record.events[0].summary, record.events[0].input) == ("ls", "ls")


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Shell", {"command": "ls"}, "ls"),
        ("Shell", {"command": "make\n  it", "description": "Build"}, "make it # Build"),
        ("Shell", {"command": "x" * 1001}, "x" * 1000 + "..."),
        ("run_terminal_cmd", {"command": "ls", "is_background": False}, "ls"),
        ("run_terminal_command_v2", {"command": "ls"}, "ls"),
        ("Read", {"path": "/a", "limit": 5}, "/a"),
        ("read_file", {"target_file": "/a"}, "/a"),
        ("read_file_v2", {"targetFile": "a", "effectiveUri": "file:///c/a"}, "a"),
        ("Write", {"path": "/a", "contents": "knot"}, "/a (4 bytes)"),
        ("Write", {"path": "/a", "contents": "\u00e9"}, "/a (2 bytes)"),
        ("write", {"relativeWorkspacePath": "a"}, "a (write)"),
        ("edit_file_v2", {"relativeWorkspacePath": "a"}, "a (edit)"),
        ("search_replace", {"file_path": "/a"}, "/a (edit)"),
        ("StrReplace", {"path": "/a", "old_string": "x"}, "/a (edit)"),
        ("EditNotebook", {"target_notebook": "/n"}, "/n (edit)"),
        ("Delete", {"path": "/a"}, "/a (delete)"),
        ("Delete", {}, ""),
        ("delete_file", {"target_file": "a"}, "a (delete)"),
        ("Grep", {"pattern": "x+", "path": "src"}, "/x+/ in src"),
        ("grep_search", {"query": "x+"}, "/x+/ in ."),
        ("ripgrep", {"pattern": "x+", "path": "src"}, "/x+/ in src"),
        ("Glob", {"glob_pattern": "**/*.ts", "target_directory": "/src"}, "**/*.ts in /src"),
        ("glob_file_search", {"globPattern": "*.py"}, "*.py"),
        ("file_search", {"query": "knot"}, "knot"),
        ("LS", {"target_directory": "/src"}, "/src"),
        ("Task", {"subagent_type": "explore", "description": "Look"}, "[explore] Look"),
        ("task_v2", {"description": "Look", "subagentType": "explore"}, "[explore] Look"),
        ("task_v2", {"prompt": "Look there"}, "Look there"),
        ("TodoWrite", {"todos": [{"status": "completed"}]}, "1/1 done"),
        ("todo_write", {"todos": [{"status": "in_progress", "content": "b"}]}, "0/1 done: b"),
        ("todo_write", {"todos": []}, ""),
        ("create_plan", {"plan": "Tie it", "todos": [{}]}, "Tie it"),
        ("codebase_search", {"query": "where", "explanation": "why"}, "where"),
        ("SemanticSearch", {"query": "where", "target_directories": []}, "where"),
        ("WebSearch", {"search_term": "knots"}, "knots"),
        ("web_search", {"searchTerm": "knots"}, "knots"),
        ("fetch", {"url": "https://x.example"}, "https://x.example"),
        ("playwright-browser_navigate", {"url": "https://x.example"}, "https://x.example"),
        ("ripgrep", {"command": "tie"}, "tie"),
        ("SwitchMode", {"b": 1, "a": 2}, "a, b"),
        ("ApplyPatch", "*** Begin Patch\n*** Update File: /a\n+x\n*** Add File: /b\n", "/a, /b"),
        ("apply_patch", {"relativeWorkspacePath": "a"}, "a (edit)"),
        ("Custom", "free\ntext", "free text"),
        ("Custom", '{"query": "where"}', "where"),
        ("Shell", None, ""),
        ("Read", {"path": ["/a"]}, ""),
        (None, {}, ""),
    ],
)
def test_summaries(tool: str | None, given: Any, expected: str) -> None:
    """Tools of every generation are summed up alike."""
    assert summarize_call(tool, given) == expected


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Read", {"path": "/a"}, (("/a", "read"),)),
        ("read_file_v2", {"target_file": "/a"}, (("/a", "read"),)),
        ("Write", {"path": "/a"}, (("/a", "write"),)),
        ("StrReplace", {"path": "/a"}, (("/a", "edit"),)),
        ("search_replace", {"file_path": "/a"}, (("/a", "edit"),)),
        ("edit_file_v2", {"relativeWorkspacePath": "a"}, (("a", "edit"),)),
        ("create_file", {"path": {"fsPath": "/a"}}, (("/a", "write"),)),
        ("read_file", {"targetFile": "a", "effectiveUri": "file:///c/a"}, (("/c/a", "read"),)),
        ("read_file", '{"target_file": "/a"}', (("/a", "read"),)),
        ("Read", {"target_directory": "/a"}, ()),
        ("Delete", {"path": "/a"}, (("/a", "edit"),)),
        (
            "ApplyPatch",
            {"patch": "*** Update File: /a\n*** Add File: /b\n*** Update File: /a\n"},
            (("/a", "edit"), ("/b", "write")),
        ),
        ("apply_patch", ["*** Delete File: a b \n"], (("a b", "edit"),)),
        ("apply_patch", {"relativeWorkspacePath": "a"}, (("a", "edit"),)),
        ("Shell", {"path": "/a"}, ()),
        ("Grep", {"path": "/a"}, ()),
        ("Read", {}, ()),
        ("Read", None, ()),
    ],
)
def test_files(tool: str, given: Any, expected: tuple[tuple[str, str], ...]) -> None:
    """Only tools that open a file touch one."""
    assert files_of_call(tool, given) == expected


def test_a_result() -> None:
    record = said("tool", result(result="a\nb"))
    assert record.results == [Result("c1", "a\nb", "ok", pointer="/content/0/result")]


def test_a_result_in_a_transcript() -> None:
    block = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": "a"}],
        "is_error": False,
    }
    assert line("tool", block).results == [
        Result("c1", "a", "ok", pointer="/message/content/0/content")
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"is_error": True, "result": "x"},
        {"isError": True, "result": "x"},
        {"output": {"type": "error-text", "value": "x"}},
    ],
)
def test_a_failed_result(more: dict[str, Any]) -> None:
    found = said("tool", result(**more)).results[0]
    assert (found.output, found.status) == ("x", "error")


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"isError": True}, ("error", None)),
        ({"output": {"isError": True}}, ("error", None)),
        ({"output": {"success": {"executionTime": 285}}, "isError": False}, ("ok", 285)),
        ({"output": {"success": {"durationMs": 85}}}, ("ok", 85)),
        ({"output": {"rejected": {"reason": "no"}}}, ("denied", None)),
        ({"output": []}, ("ok", None)),
    ],
)
def test_what_a_message_says_of_its_result(details: Any, expected: tuple[str, int | None]) -> None:
    options = {"cursor": {"highLevelToolCallResult": details}}
    found = said("tool", result(result="x"), providerOptions=options).results[0]
    assert (found.status, found.duration_ms) == expected


def test_what_a_message_says_of_several_results() -> None:
    """It does not say which one failed."""
    options = {"cursor": {"highLevelToolCallResult": {"isError": True}}}
    record = said("tool", result(result="a"), result(result="b"), providerOptions=options)
    assert [found.status for found in record.results] == ["ok", "ok"]


def test_images_of_a_result_are_counted() -> None:
    seen = [{"type": "image", "data": "aGk="}]
    found = said("tool", result(result="shot", experimental_content=seen)).results[0]
    assert (found.output, found.images) == ("shot", 1)


def test_a_result_without_an_id_is_told_alone() -> None:
    block = {"type": "tool-result", "name": "read_file", "content": [{"type": "text", "text": "a"}]}
    assert told(line("user", block)) == [("system", "tool_result", "a")]


def test_a_result_of_plain_text() -> None:
    record = parse_message({"role": "tool", "id": "c1", "content": "a"})
    assert record.results == [Result("c1", "a", "ok", pointer="/content")]
