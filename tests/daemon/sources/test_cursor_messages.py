from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Result, Title
from sessiond.sources.cursor.calls import files_of_call, summarize_call
from sessiond.sources.cursor.messages import parse_message
from sessiond.sources.cursor.prompts import read_time


def said(role: str, *content: Any, **more: Any) -> Record:
    """A message of a chat, with these blocks."""
    blocks = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
    return parse_message({"role": role, "content": blocks, **more})


def line(role: str, *content: Any, **more: Any) -> Record:
    """A line of a transcript, with these blocks."""
    return parse_message({"role": role, "message": {"content": [*content]}, **more})


def told(record: Record) -> list[tuple[str, str | None, str]]:
    return [(event.type, event.label, event.text) for event in record.events]


def call(name: str = "Shell", **more: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": "c1", "toolName": name, "args": {}, **more}


def result(**more: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": "c1", "toolName": "Shell", **more}


# -- what a person said


def test_a_query_is_unwrapped() -> None:
    record = said("user", "<user_query>\ntie a knot\n</user_query>")
    assert told(record) == [("user", None, "tie a knot")]


def test_a_query_gives_the_title() -> None:
    record = said("user", "<user_query>\ntie\n  a knot\n</user_query>")
    assert record.titles == [Title("tie a knot", TITLE_PROMPT)]


def test_text_without_a_query_is_what_was_typed() -> None:
    record = parse_message({"role": "user", "content": "tie a knot"})
    assert told(record) == [("user", None, "tie a knot")]


def test_the_kind_of_a_message_is_its_role() -> None:
    record = parse_message({"role": "user", "content": "x"}, native_id="n1")
    assert (record.kind, record.role, record.native_id) == ("user", "user", "n1")


@pytest.mark.parametrize(
    "name", ["user_info", "git_status", "project_layout", "rules", "open_and_recently_viewed_files"]
)
def test_context_is_not_what_a_person_said(name: str) -> None:
    record = said("user", f"<{name}>\nOS: linux\n</{name}>")
    assert told(record) == [("system", "context", "OS: linux")]


def test_context_is_no_title() -> None:
    assert said("user", "<user_info>\nOS: linux\n</user_info>").titles == []


@pytest.mark.parametrize(
    ("name", "label"), [("system_reminder", "reminder"), ("system_notification", "notification")]
)
def test_notices_to_the_agent_have_labels(name: str, label: str) -> None:
    record = said("user", f"<{name}>Mind the gap</{name}>")
    assert told(record) == [("system", label, "Mind the gap")]


def test_context_around_a_query() -> None:
    """Elements side by side, with attributes and with others inside, and the query among them."""
    text = (
        '<rules>\n<user_rules description="x">Be brief</user_rules>\n</rules>\n'
        "<attached_files>a.py</attached_files><user_query>go</user_query>\n"
        "<system_reminder>later</system_reminder>"
    )
    assert told(said("user", text)) == [
        ("system", "context", '<user_rules description="x">Be brief</user_rules>'),
        ("system", "context", "a.py"),
        ("system", "reminder", "later"),
        ("user", None, "go"),
    ]


def test_whatever_stands_beside_a_query_is_context() -> None:
    """In the same block or in another one."""
    record = said("user", "--- Command: go ---\n<user_query>go</user_query>", "injected")
    assert told(record) == [
        ("system", "context", "--- Command: go ---"),
        ("system", "context", "injected"),
        ("user", None, "go"),
    ]


@pytest.mark.parametrize(
    "typed",
    [
        "what is <user_query>x</user_query> for",
        "what is <user_query> for",
        "<rules>\nmine\n</rules>",
        "<div>\n</div>",
    ],
)
def test_elements_inside_a_query_were_typed(typed: str) -> None:
    record = said("user", f"<user_query>\n{typed}\n</user_query>")
    assert told(record) == [("user", None, typed)]


def test_several_queries_in_one_text() -> None:
    record = said("user", "<user_query>a</user_query>\n<user_query>b</user_query>")
    assert told(record) == [("user", None, "a\nb")]


def test_a_query_without_an_end() -> None:
    assert told(said("user", "<user_query>\ntie a")) == [("user", None, "tie a")]


def test_an_empty_query() -> None:
    assert said("user", "<user_query>\n</user_query>").events == []


def test_an_unknown_element_alone_is_context() -> None:
    """Cursor adds new ones with every version."""
    record = said("user", "<brand_new_facts>\nx\n</brand_new_facts>")
    assert told(record) == [("system", "context", "x")]


@pytest.mark.parametrize(
    "typed",
    [
        "<my_notes>\nx\n</my_notes>\nuse these",
        "see\n<my_notes>\nx\n</my_notes>",
        "<p>hello</p>",
        "<my_notes>\nthat never end",
        "the <rules> of the game",
        "explain\n<rules>\nthat never end",
    ],
)
def test_elements_that_a_person_typed(typed: str) -> None:
    assert told(said("user", typed)) == [("user", None, typed)]


def test_a_reminder_after_what_was_typed() -> None:
    record = said("user", "go on\n<system_reminder>\nbe kind\n</system_reminder>")
    assert told(record) == [("system", "reminder", "be kind"), ("user", None, "go on")]


def test_context_that_was_cut_off() -> None:
    assert told(said("user", "<user_info>\nOS: li")) == [("system", "context", "OS: li")]


@pytest.mark.parametrize("unit", ["<rules>\n", "<a_b>\n", "<b>", "\n\n<user_query>", "<a_b></a_b>"])
def test_many_tags_take_no_time(unit: str) -> None:
    """Text of any kind is read in one pass."""
    start = time.perf_counter()
    said("user", "x\n" + unit * 50_000)
    said("user", unit * 50_000)
    assert time.perf_counter() - start < 5


def test_images_of_a_prompt_are_counted() -> None:
    record = said("user", {"type": "image", "image": "aGk="}, "<user_query>see</user_query>")
    assert record.events == [Event("user", "see", images=1)]


def test_a_prompt_of_nothing_but_an_image() -> None:
    record = said("user", {"type": "file", "mediaType": "image/png", "data": "aGk="})
    assert record.events == [Event("user", "[image]", images=1)]


def test_marks_of_images_are_counted() -> None:
    record = said("user", "[Image]\n<user_query>\n[Image]\nsee\n</user_query>")
    assert record.events == [Event("user", "see", images=2)]


def test_a_summary_in_place_of_a_prompt() -> None:
    """What was said before was summed up by the agent: no person typed it."""
    record = said("user", "We tied a knot", providerOptions={"cursor": {"isSummary": True}})
    assert (told(record), record.titles) == ([("summary", "compact", "We tied a knot")], [])


# -- times


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Tuesday, Jan 6, 2026, 3:04 PM (UTC+1)", 1767708240000),
        ("Tuesday, Jan 6, 2026, 3:04\u202fPM (UTC+1)", 1767708240000),
        ("Tuesday, January 6, 2026, 7:34 PM (UTC+5:30)", 1767708240000),
        ("Tuesday, Jan 6, 2026, 7:04 AM (UTC-7)", 1767708240000),
        ("Tuesday, Jan 6, 2026, 7:04 AM (UTC\u22127)", 1767708240000),
        ("Jan 6, 2026, 2:04 PM (UTC)", 1767708240000),
        ("Tue, Jan 6, 2026 at 14:04:05 GMT", 1767708245000),
        ("Wednesday, Jan 7, 2026, 12:04 AM (UTC+10)", 1767708240000),
        ("2026-01-06T14:04:00Z", 1767708240000),
        ("2026-01-06T15:04:00+01:00", 1767708240000),
        ("1767708240000", 1767708240000),
        ("Tuesday, Jan 6, 2026, 3:04 PM", None),
        ("Tuesday, Jan 36, 2026, 3:04 PM (UTC+1)", None),
        ("Tuesday, Foo 6, 2026, 3:04 PM (UTC+1)", None),
        ("Tuesday, Jan 6, 2026, 3:04 PM (UTC+77)", None),
        ("Tuesday, Jan 6, 0000, 3:04 PM (UTC+1)", None),
        ("soon", None),
        ("", None),
    ],
)
def test_times(written: str, expected: int | None) -> None:
    """A time that a person can read needs its distance from UTC to be one."""
    assert read_time(written) == expected


def test_the_time_in_a_prompt_is_taken_out() -> None:
    text = (
        "<timestamp>Tuesday, Jan 6, 2026, 3:04 PM (UTC+1)</timestamp>\n<user_query>go</user_query>"
    )
    record = said("user", text)
    assert (told(record), record.ts) == ([("user", None, "go")], 1767708240000)


def test_a_time_that_is_none_is_taken_out_as_well() -> None:
    record = said("user", "<timestamp>soon</timestamp>\ngo")
    assert (told(record), record.ts) == ([("user", None, "go")], None)


def test_the_time_of_the_line_counts_first() -> None:
    block = {"type": "text", "text": "<timestamp>2026-01-06T14:04:00Z</timestamp>go"}
    assert line("user", block, timestamp="2026-03-04T05:06:07Z").ts == 1772600767000


def test_a_bad_time_is_told() -> None:
    assert line("user", timestamp="soon").warnings == ["bad timestamp"]


def test_a_time_inside_a_query_was_typed() -> None:
    record = said("user", "<user_query>\n<timestamp>1767708240</timestamp>\n</user_query>")
    assert (record.ts, record.events[0].text) == (None, "<timestamp>1767708240</timestamp>")


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


# -- lines that are no messages


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


@given(st.dictionaries(NAMES, JSON, max_size=8))
def test_no_message_can_fail(value: dict[str, Any]) -> None:
    """Whatever types stand there, a record comes out and its events say something."""
    record = parse_message(value)
    assert all(event.text or event.type == "tool_use" for event in record.events)


@given(st.sampled_from(["user", "assistant", "tool", "system"]), st.lists(JSON, max_size=4))
def test_no_content_can_fail(role: str, content: list[Any]) -> None:
    assert parse_message({"role": role, "content": content}).role == role
