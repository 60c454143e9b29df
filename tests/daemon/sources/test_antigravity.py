"""Transcripts of Antigravity: which step answers which call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessiond.sourcekit.base import SessionSpec
from sessiond.sources.antigravity.transcript import TranscriptParser, status_of

SESSION = "ae000000-0000-4000-8000-0000000000aa"


def answers(*steps):
    """(call, status, output) of each result, with a restart before every step."""
    found: list[tuple[str, str, str]] = []
    state: dict[str, Any] = {}
    for step in steps:
        parser = TranscriptParser(SessionSpec(SESSION), json.loads(json.dumps(state)))
        found += [(one.call_id, one.status, one.output) for one in parser.parse(step).results]
        state = parser.state()
    return found


def response(step, *tools):
    calls = [{"id": f"{tool} {step}", "name": tool, "args": {}} for tool in tools]
    return {"step_index": step, "type": "PLANNER_RESPONSE", "status": "DONE", "tool_calls": calls}


def step(number, kind, content="", status="DONE", **more):
    return {"step_index": number, "type": kind, "status": status, "content": content, **more}


def message(number, task, content):
    head = f"<SYSTEM_MESSAGE>\n[Message] sender={SESSION}/task-{task} priority=HIGH content="
    return step(number, "SYSTEM_MESSAGE", f"{head}{content}\n</SYSTEM_MESSAGE>")


def test_an_invalid_call_is_answered_by_its_error():
    """The result after it belongs to the next response."""
    bad = "Error invalid tool call: no such file"
    assert answers(
        response(1, "view_file"),
        step(2, "ERROR_MESSAGE", bad),
        response(3, "run_command"),
        step(4, "RUN_COMMAND", "built"),
    ) == [("view_file 1", "error", bad), ("run_command 3", "ok", "built")]


def test_a_call_that_nothing_answered_takes_no_later_result():
    """The response was stopped; the next one makes the same call."""
    assert answers(
        response(1, "run_command", "run_command"),
        response(2, "run_command"),
        step(3, "RUN_COMMAND", "built"),
    ) == [("run_command 2", "ok", "built")]


def test_an_error_of_the_service_answers_no_call():
    """It may bear the number of a step that is already there, and does not replace it."""
    error = step(2, "ERROR_MESSAGE", error="RESOURCE_EXHAUSTED (code 429)")
    parser = TranscriptParser(SessionSpec(SESSION), {})
    parser.parse(response(1, "list_dir"))
    listed, failed = parser.parse(step(2, "LIST_DIRECTORY", "a.py")), parser.parse(error)
    assert [one.call_id for one in listed.results] == ["list_dir 1"]
    assert [one.native_id for one in failed.retires] != [listed.native_id]
    assert [(event.label, event.text) for event in failed.events] == [
        ("api_error", "RESOURCE_EXHAUSTED (code 429)")
    ]


def test_a_call_in_the_background_is_answered_by_the_message_about_it():
    """Meanwhile other calls run and end; a message about a task that nobody knows is a notice."""
    failed = "The command failed with exit code: 1"
    told = f'Task id "{SESSION}/task-2" finished with result:\n\n\t{failed}'
    assert answers(
        response(1, "run_command"),
        step(2, "RUN_COMMAND", "Tool is running as a background task", "RUNNING"),
        response(3, "run_command"),
        step(4, "RUN_COMMAND", "built"),
        message(5, 2, told),
        message(6, 2, told),
    ) == [
        ("run_command 3", "ok", "built"),
        ("run_command 1", "error", failed),
    ]


def test_results_find_the_calls_of_their_tools():
    """Calls of one response may end in another order."""
    assert answers(
        response(1, "run_command", "view_file", "write_to_file"),
        step(2, "VIEW_FILE", "text"),
        step(3, "CODE_ACTION", "created"),
        step(4, "RUN_COMMAND", "built"),
    ) == [
        ("view_file 1", "ok", "text"),
        ("write_to_file 1", "ok", "created"),
        ("run_command 1", "ok", "built"),
    ]


def test_a_step_that_comes_again_answers_the_same_call():
    assert answers(
        response(1, "run_command", "run_command"),
        step(2, "RUN_COMMAND", "a", "RUNNING"),
        step(2, "RUN_COMMAND", "b"),
        step(2, "RUN_COMMAND", "c"),
    ) == [("run_command 1", "ok", "b"), ("run_command 1", "ok", "c")]


@pytest.mark.parametrize(
    ("output", "failed", "status"),
    [
        ("\n\t\t\t\tThe command failed with exit code: 1\n", False, "error"),
        ("\n\t\t\t\tThe command completed successfully.\n", False, "ok"),
        ("open /etc/shadow: permission denied", True, "error"),
        ("Permission denied: the user rejected this command.", True, "denied"),
        ("tool call denied with reason: loop", True, "denied"),
    ],
)
def test_how_a_call_ended(output, failed, status):
    """What a file system denies, no person refused."""
    assert status_of(output, failed=failed) == status
