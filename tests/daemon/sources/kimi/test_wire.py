"""Wire logs of Kimi: what a golden home has no room for."""

from __future__ import annotations

import json

import pytest

from sessiond.sourcekit.base import SessionSpec
from sessiond.sources.kimi import KimiSource
from sessiond.sources.kimi.wire import WireParser


def parsed(*lines):
    parser = WireParser(SessionSpec("s1"), {})
    return [parser.parse(line) for line in lines]


def test_the_context_is_read_only_without_a_wire_log(tmp_path):
    """It repeats the conversation as the model saw it."""
    source = KimiSource(environ={"HOME": str(tmp_path)})
    context = tmp_path / ".kimi" / "sessions" / "d1" / "s1" / "context.jsonl"
    context.parent.mkdir(parents=True)
    assert source.classify(str(context)) == "transcript"
    context.with_name("wire.jsonl").touch()
    assert source.classify(str(context)) is None
    assert source.classify(str(context.with_name("context_1.jsonl"))) is None


def test_arguments_that_come_in_pieces_are_one_call():
    """Each piece replaces the call before it, also for a parser that continues in between."""
    function = {"name": "Shell", "arguments": '{"command":'}
    begun = {"timestamp": 1.7e9, "message": {
        "type": "ToolCall", "payload": {"id": "t1", "function": function},
    }}  # fmt: skip
    more = {"timestamp": 1.7e9 + 1, "message": {
        "type": "ToolCallPart", "payload": {"arguments_part": '"ls"}'},
    }}  # fmt: skip
    first = WireParser(SessionSpec("s1"), {})
    call = first.parse(begun)
    second = WireParser(SessionSpec("s1"), json.loads(json.dumps(first.state())))
    whole = second.parse(more)
    assert [retire.native_id for retire in whole.retires] == [call.native_id]
    assert [(event.call_id, event.summary) for event in whole.events] == [("t1", "ls")]


@pytest.mark.parametrize(
    ("edit", "edits"),
    [
        ({"old": "a", "new": "b"}, [("a", "b")]),
        ([{"old": "a", "new": "b"}, {"old": "c"}, 7], [("a", "b"), ("c", "")]),
        ("a", []),
    ],
)
def test_replacements_are_edits(edit, edits):
    function = {"name": "StrReplaceFile", "arguments": json.dumps({"path": "/f", "edit": edit})}
    line = {"timestamp": 1.7e9, "message": {
        "type": "ToolCall", "payload": {"id": "t1", "function": function},
    }}  # fmt: skip
    (record,) = parsed(line)
    assert [(one.old, one.new) for one in record.events[0].edits] == edits


def test_a_step_and_its_record_are_one_response():
    """Kimi Code writes the tokens twice; a compaction has a record only."""
    usage = {"inputOther": 5, "output": 2}
    lines = (
        {"type": "context.append_loop_event", "time": 1.7e12,
         "event": {"type": "step.end", "uuid": "u1", "usage": usage}},
        {"type": "usage.record", "time": 1.7e12 + 1, "model": "m/k2", "usage": usage},
        {"type": "usage.record", "time": 1.7e12 + 2, "model": "m/k2", "usage": usage},
    )  # fmt: skip
    keys = [record.usage.message_id for record in parsed(*lines)]
    assert keys[:2] == ["u1", "u1"]
    assert keys[2] != "u1"


@pytest.mark.parametrize(
    "kind",
    [
        "prompt.accepted",
        "task.started",
        "interaction.request",
        "file_history.tracked",
        "plan.revision",
    ],
)
def test_notes_about_the_program_say_nothing(kind):
    """Some repeat a prompt or what a call asked for."""
    (record,) = parsed({"type": kind, "time": 1790000000000, "text": "fly the kite"})
    assert (record.events, record.warnings) == ([], [])


def test_the_second_version_of_the_state_names_the_project(tmp_path):
    session = tmp_path / ".kimi-code" / "sessions" / "wd_kite_ac3b" / "session_1"
    (session / "agents" / "main").mkdir(parents=True)
    (session / "state.json").write_text(json.dumps({"version": 2, "cwd": "/home/kim/kite"}))
    source = KimiSource(environ={"HOME": str(tmp_path)})
    assert source.identify(str(session / "agents/main/wire.jsonl"), b"").project == "/home/kim/kite"


def test_subagents_side_by_side_keep_their_inputs():
    """Pieces of arguments belong to the last call of their own stream, also after a restart."""
    given = {"a": "tail.c", "b": "line.c", None: "main.c"}

    def line(number, kind, payload, task):
        message = {"type": kind, "payload": payload}
        if task:
            inner = {"task_tool_call_id": task, "event": message}
            message = {"type": "SubagentEvent", "payload": inner}
        return {"timestamp": 1.7e9 + number, "message": message}

    begun = [
        line(at, "ToolCall", {"id": f"call {path}", "function": {
            "name": "ReadFile", "arguments": '{"path": '}}, task)
        for at, (task, path) in enumerate(given.items())
    ]  # fmt: skip
    more = [
        line(10 + at, "ToolCallPart", {"arguments_part": f'"{path}"}}'}, task)
        for at, (task, path) in enumerate(given.items())
    ]
    first = WireParser(SessionSpec("s1"), {})
    calls = [first.parse(one) for one in begun]
    second = WireParser(SessionSpec("s1"), json.loads(json.dumps(first.state())))
    whole = [second.parse(one) for one in more]
    assert [record.retires[0].native_id for record in whole] == [one.native_id for one in calls]
    assert [
        (record.subagent, record.events[0].call_id, record.events[0].input) for record in whole
    ] == [(task, f"call {path}", path) for task, path in given.items()]
