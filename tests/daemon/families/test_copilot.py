"""Events of GitHub Copilot's agent that a golden home has no room for."""

from __future__ import annotations

import json

import pytest

from sessiond.families.copilot import EventParser, describe
from sessiond.sourcekit.base import SessionSpec
from sessiond.sources.copilot import CopilotSource


def parsed(*events):
    parser = EventParser(SessionSpec("s1"), {})
    return [parser.parse({"type": kind, "data": data}) for kind, data in events]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ({"success": True, "result": {"content": "ok\n<exited with exit code 0>"}}, "ok"),
        ({"success": True, "result": {"content": "no\n<exited with exit code 1>\n"}}, "error"),
        ({"success": True, "result": {"content": "<shellId: 3 completed with exit code 2>"}},
         "error"),
        ({"success": True, "result": {"content": "<exited with exit code 1>\nwas all"}}, "ok"),
        ({"success": True, "result": "no\n<exited with exit code 1>"}, "error"),
        ({"success": True, "shellExecution": {"exitCode": 3}}, "error"),
        ({"success": True, "result": {"contents": [{"type": "shell_exit", "exitCode": 1}]}},
         "error"),
        ({"success": False, "error": {"message": "no", "code": "denied"}}, "denied"),
        ({"success": False, "error": {"message": "no", "code": "timeout"}}, "error"),
        ({"success": False, "error": {"message": "open: permission denied"}}, "error"),
        ({"success": False, "error": {"message": "The user rejected this tool call."}}, "denied"),
    ],
)  # fmt: skip
def test_the_end_of_a_call_gives_its_status(end, status):
    """A command that failed is a failed call, although the agent ran it successfully."""
    (record,) = parsed(("tool.execution_complete", {"toolCallId": "c1", **end}))
    assert [result.status for result in record.results] == [status]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"content": "go"}, "user"),
        ({"content": "go", "source": "user"}, "user"),
        ({"content": "go", "source": "immediate-prompt"}, "user"),
        ({"content": "go", "source": "agent-explore-1"}, "system"),
        ({"content": "go", "source": "skill-pdf"}, "system"),
        ({"content": "go", "isAutopilotContinuation": True}, "system"),
    ],
)
def test_only_what_people_send_is_a_prompt(said, kind):
    (record,) = parsed(("user.message", said))
    assert [event.type for event in record.events] == [kind]
    assert bool(record.titles) is (kind == "user")


def test_reasoning_that_is_written_twice_is_shown_once():
    """As an event and in its message, in either order; two messages may well think alike."""
    event = ("assistant.reasoning", {"content": "hm"})
    message = ("assistant.message", {"reasoningText": "hm"})
    for pair in ((event, message), (message, event)):
        assert [len(record.events) for record in parsed(*pair)] == [1, 0]
    assert [len(record.events) for record in parsed(message, message)] == [1, 1]


def test_a_call_is_requested_and_started_once():
    """Also if another parser continues between the two."""
    request = {"toolRequests": [{"toolCallId": "c1", "name": "bash", "arguments": {}}]}
    start = {"toolCallId": "c1", "toolName": "bash", "arguments": {}}
    first = EventParser(SessionSpec("s1"), {})
    assert len(first.parse({"type": "tool.execution_start", "data": start}).events) == 1
    second = EventParser(SessionSpec("s1"), json.loads(json.dumps(first.state())))
    assert second.parse({"type": "assistant.message", "data": request}).events == []


def test_several_replacements_are_one_edit_each():
    """In one call of the editor's tool."""
    replacements = [
        {"filePath": "/a", "oldString": "x", "newString": "y"},
        {"filePath": "/b", "oldString": "p", "newString": "q"},
    ]
    assert describe("copilot_multiReplaceString", {}).kind == "edit"
    found = describe("multi_replace_string_in_file", {"replacements": replacements})
    assert (found.kind, found.files) == ("edit", (("/a", "edit"), ("/b", "edit")))
    assert [(edit.path, edit.old, edit.new) for edit in found.edits] == [
        ("/a", "x", "y"),
        ("/b", "p", "q"),
    ]


@pytest.mark.parametrize(
    ("end", "used"),
    [
        ({"modelMetrics": {"m": {"usage": {"inputTokens": 9, "cacheReadTokens": 5,
                                           "outputTokens": 2}}}}, [("m", 4, 5, 2)]),
        ({"modelMetrics": {"m": {"requests": 2}}, "currentModel": "m",
          "tokenDetails": {"input": {"tokenCount": 4}, "output": {"tokenCount": 2},
                           "cache_read": {"tokenCount": 5}}},
         [("m", 4, 5, 2), ("m", 0, 0, 0)]),  # the first response has the sum
        ({"modelMetrics": {"m": {"usage": {"reasoningTokens": 1}, "tokenDetails": {
            "input": {"tokenCount": 4}, "output": {"tokenCount": 2},
            "cache_read": {"tokenCount": 5}}}}}, [("m", 4, 5, 2)]),
        ({"modelMetrics": {"m": {"requests": 2}}}, []),
    ],
)  # fmt: skip
def test_the_end_of_a_session_says_what_it_used(end, used):
    """Without counts it says nothing, and what single messages say stands."""
    (record,) = parsed(("session.shutdown", end))
    found = [record.usage, *record.advice] if record.usage else []
    assert [
        (one.model, one.input_tokens, one.cache_read_tokens, one.output_tokens) for one in found
    ] == used


@pytest.mark.parametrize(
    ("facts", "title"),
    [
        ("name: Kite\nsummary: Fly a kite\n", "Kite"),
        ("id: s1\nsummary: Fly a kite\n", "Fly a kite"),
        ("summary: |-\n  Fly a kite\n  today\ncwd: /kite\n", "Fly a kite"),
        ("summary: >\ncwd: /kite\n", None),
        ("summary: null\n", None),
        ("", None),
    ],
)
def test_a_session_has_the_name_that_copilot_noted(tmp_path, facts, title):
    """Earlier versions call it a summary, which may be on lines of its own."""
    (tmp_path / "workspace.yaml").write_text(facts)
    assert CopilotSource().identify(str(tmp_path / "events.jsonl"), b"").title == title
