"""A copy is the same record however its JSON is written."""

from __future__ import annotations

import json

import pytest
from tests.daemon.writing.test_order import reordered

OLD = "aaaaaaaa-1111-4111-8111-111111111111"
FORK = "bbbbbbbb-1111-4111-8111-111111111111"


def talk(t):
    """A prompt, an edit that succeeds, an attachment and a call that fails."""
    noted = {"type": "hook_success", "hookName": "PostToolUse", "content": "tidy"}
    return [
        t.prompt("warm the pot"),
        t.call("c1", "Edit", file_path="/w/a.py", old_string="a", new_string="b"),
        t.result("c1", "done"),
        t.record("attachment", None, attachment=noted),
        t.call("c2", command="make tea", description="Brew"),
        t.result("c2", "no water", is_error=True),
    ]


@pytest.mark.parametrize("first", [OLD, FORK])
def test_a_fork_with_other_json_shares_its_records(world, first):
    """Calls count once and are answered, in both sessions, whichever is read first."""
    t = world.transcript(OLD)
    lines = talk(t)
    copies = [reordered({**line, "sessionId": FORK}) for line in lines]
    files = {OLD: lines, FORK: [json.dumps(line).encode() + b"\n" for line in copies]}
    for session in (first, *(files.keys() - {first})):
        world.transcript(session).append(*files[session])
        world.ingest()
    assert world.sql("SELECT tool, status FROM events WHERE type = 'tool_use' ORDER BY ts") == [
        ("Edit", "ok"),
        ("Bash", "error"),
    ]
    assert world.sql("SELECT native_id, tool_calls, prompts FROM sessions ORDER BY 1") == [
        (OLD, 2, 1),
        (FORK, 2, 1),
    ]
    owners = "SELECT DISTINCT s.native_id FROM events e JOIN sessions s ON s.id = e.session_id"
    assert world.sql(owners) == [(OLD,)]
    assert world.found("b a") == ["/w/a.py\na\nbdone"]
    world.check()


def test_a_file_written_anew_elsewhere_repeats_nothing(world):
    """Records without an id are known by their line and what they say."""
    t = world.transcript(OLD)
    summary = {"type": "summary", "summary": "About tea", "leafUuid": "x"}
    lines = [*talk(t), summary, {"type": "unheard-of", "b": "two words", "a": "one"}]
    t.append(*lines)
    world.ingest()
    before = world.dump()
    other = world.transcript(OLD, folder="-elsewhere")
    other.append(*(json.dumps(reordered(line)).encode() + b"\n" for line in lines))
    world.ingest()
    for part in ("events", "usage"):
        assert world.dump()[part] == before[part]
    assert world.sql("SELECT events, prompts, tool_calls FROM sessions") == [(6, 1, 2)]


@pytest.mark.parametrize("piecewise", [False, True])
def test_a_resumed_session_repeats_the_blocks_of_its_records(world, piecewise):
    """Each with a new id and the old time: nothing is asked, called or answered twice."""
    t = world.transcript(OLD)
    editor, image = (
        {"type": "text", "text": "<ide_opened_file>a</ide_opened_file>"},
        {"type": "image"},
    )
    asked = [editor, image, {"type": "text", "text": "what is this?"}]
    prompt = t.record("user", {"role": "user", "content": asked})
    calls = [t.call("c1", command="ls"), t.call("c2", command="cat")]
    answers = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "x"} for n in (1, 2)]
    answered = t.record("user", {"role": "user", "content": answers})
    first = [prompt, *calls, answered, t.answer("a teapot")]
    again = [
        {**line, "uuid": f"{line['uuid']}-{at}", "message": {**line["message"], "content": [block]}}
        for line in first
        for at, block in enumerate(line["message"]["content"])
    ]
    resumed = {**t.prompt(""), "type": "queue-operation", "operation": "dequeue"}
    t.append(*first)
    for line in (resumed, *again, t.prompt("what is this?")):
        if piecewise:
            world.ingest()
        t.append(line)
    world.ingest()
    kinds = [kind for kind, _, _ in world.shown(OLD)]
    assert kinds == ["system", "user", "tool_use", "tool_use", "assistant", "user"]
    assert world.sql("SELECT events, prompts, tool_calls FROM sessions") == [(6, 2, 2)]
    assert world.sql("SELECT count(*), sum(output_tokens) FROM usage WHERE counted") == [(3, 30)]
    world.check()
