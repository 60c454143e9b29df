"""`sess history`: messages that a model accepts, whatever happened in the session."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.continuing.continuing_worlds import (
    SESSION,
    call,
    history,
    objects,
    read_messages,
    recorder,
)
from tests.conftest import World

from sess_cli.continuing import history as messages
from sess_cli.continuing import history as pruning
from sess_cli.continuing.history import Message, as_blocks, as_chat


def short(found):
    """Roles and contents; for calls, their ids."""
    return [
        (one["role"], [c["id"] for c in one["tool_calls"]] if "tool_calls" in one else None)
        if one["content"] is None
        else (one["role"], one["content"])
        for one in found
    ]


def test_calls_and_texts_become_messages(world):
    """A text after calls joins them if no result came between; subagents are left out."""
    with recorder(world) as record:
        record.system_prompt("Be brief.")
        record.user("boil water", [{"media_type": "image/png", "data": "aGk="}])
        record.tool_call("read", {"path": "a"}, "c1")
        record.tool_call("read", {"path": "b"}, "c2")
        record.assistant("reading both")
        record.tool_result("read", "A", "c1")
        record.tool_result("read", "B", "c2")
        record.mode("auto")
        record.tool_call("subagent", {"name": "look"}, "c3")
        record.subagent_start("look", "explore")
        call(record, "glob", "s1", "drawer/fork", pattern="*")
        record.assistant("a fork")
        record.subagent_result("look", "a fork")
        record.tool_result("subagent", "a fork", "c3")
        record.assistant("")
        record.assistant("done")
        record.assistant("indeed")
    first, joined, *rest = history(world)
    assert first == {
        "role": "user",
        "content": [
            {"type": "text", "text": "boil water"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ],
    }
    assert joined == {
        "role": "assistant",
        "content": "reading both",
        "tool_calls": [
            {
                "id": name,
                "type": "function",
                "function": {
                    "name": "read",
                    "arguments": f'{{"path":"{path}"}}',
                },
            }
            for name, path in (("c1", "a"), ("c2", "b"))
        ],
    }
    assert rest[0] == {"role": "tool", "tool_call_id": "c1", "name": "read", "content": "A"}
    assert short(rest) == [
        ("tool", "A"),
        ("tool", "B"),
        ("assistant", ["c3"]),
        ("tool", "a fork"),
        ("assistant", "done"),
        ("assistant", "indeed"),
    ]


def test_a_result_between_begins_a_new_message(world):
    """As it was said: the text comes after the result."""
    with recorder(world) as record:
        record.user("go")
        call(record, "read", "c1", "A")
        record.assistant("first")
        record.tool_call("read", {}, "c2")
        record.tool_call("read", {}, "c3")
        record.tool_result("read", "C", "c3")
        record.tool_result("read", "B", "c2")
    assert short(history(world))[1:4] == [
        ("assistant", ["c1"]),
        ("tool", "A"),
        ("assistant", "first"),
    ]
    assert [one.get("tool_call_id") for one in history(world)][4:] == ["c2", "c3"]


def test_a_call_without_a_result_gets_one(world):
    """And a result without a call is left out: no API takes either alone."""
    with recorder(world) as record:
        record.user("go")
        record.tool_result("read", "of nothing", "c0")
        record.tool_call("execute", {"command": "sleep"}, "c1")
        record.user("stop")
        call(record, "write", "c2", "", error="disk full")
        record.tool_call("write", {}, "c3")
        record.tool_result("write", "", "c3", denied=True)
    assert short(history(world)) == [
        ("user", "go"),
        ("assistant", ["c1"]),
        ("tool", messages.NO_RESULT),
        ("user", "stop"),
        ("assistant", ["c2"]),
        ("tool", "disk full"),
        ("assistant", ["c3"]),
        ("tool", messages.DENIED),
    ]


def test_a_compaction_takes_the_place_of_what_was_before(world):
    """The last one counts; what it keeps begins with a call, not with its result."""
    with recorder(world) as record:
        record.user("one")
        record.compact("long ago")
        record.user("two")
        call(record, "read", "c1", "A")
        record.assistant("seen")
        record.compact("so far", kept=2)
        record.user("three")
    assert short(history(world)) == [
        ("system", "so far"),
        ("assistant", ["c1"]),
        ("tool", "A"),
        ("assistant", "seen"),
        ("user", "three"),
    ]
    assert [one["content"] for one in history(world, "--all") if one["role"] == "user"] == [
        "one",
        "two",
        "three",
    ]


def test_a_compaction_may_keep_more_than_there_is(world):
    """Then everything stays beside the summary."""
    with recorder(world) as record:
        record.user("one")
        record.compact("so far", kept=99)
    assert short(history(world)) == [("system", "so far"), ("user", "one")]


def test_old_outputs_make_way_for_hints(world):
    """Those before the last N prompts, each with how to get it again."""
    with recorder(world) as record:
        record.user("one")
        call(record, "read", "c1", "A", file_path="/a")
        call(record, "grep", "c2", "B", pattern="tea")
        call(record, "execute", "c3", "C", error="exit 1", command="make")
        call(record, "frobnicate", "c4", "D")
        record.tool_call("execute", {"command": "rm -rf /"}, "c5")
        record.tool_result("execute", "", "c5", denied=True)
        record.user("two")
        call(record, "read", "c6", "E", file_path="/e")
        record.user("three")

    def outputs(*arguments):
        return [one["content"] for one in history(world, *arguments) if one["role"] == "tool"]

    hints = [
        "[old output removed. If you need it, read the file again: /a]",
        "[old output removed. If you need it, search again: tea]",
        "[old output removed. The call failed. If you need it, run the command again: make]",
        "[old output removed. If you need it, call frobnicate again]",
        messages.DENIED,
    ]
    whole = ["A", "B", "C", "D", messages.DENIED, "E"]
    assert outputs("--prune", "2") == [*hints, "E"]
    assert outputs("--prune", "0") == [*hints, "E"]
    assert (
        outputs("--prune", "1")[-1]
        == "[old output removed. If you need it, read the file again: /e]"
    )
    assert outputs("--prune", "3") == outputs("--prune", "4") == outputs() == whole


def test_messages_in_blocks(world):
    """Roles take turns, results are a user's, failures are marked, and the first one is a user."""
    with recorder(world) as record:
        record.compact("so far")
        record.assistant("hello")
        record.user("go")
        call(record, "read", "c#1", "", error="no")
        record.user("again")
    assert history(world, "--format", "anthropic") == [
        {"role": "user", "content": [{"type": "text", "text": "so far"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c_1", "name": "read", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c_1",
                    "content": [{"type": "text", "text": "no"}],
                    "is_error": True,
                },
                {"type": "text", "text": "again"},
            ],
        },
    ]


def test_a_history_can_be_recorded_again(world):
    """`sess history --json | sess record` is the same conversation."""
    with recorder(world) as record:
        record.user("one", [{"media_type": "image/png", "data": "aGk="}])
        call(record, "read", "c1", "A", path="a")
        record.assistant("seen")
    printed = world.run("sess", "history", SESSION, "--json", check=0).stdout
    world.run("sess", "record", "--session", "again", input=printed, check=0)
    assert objects(world.run("sess", "history", "again", "--json", check=0)) == history(world)


def test_claude_is_read_the_same_way(world):
    """Texts and calls of one response, queued results, a compaction, thoughts."""
    log = world.transcript()
    log.append(
        log.prompt("one"),
        log.assistant([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]),
        log.call("t1", command="ls"),
        log.result("t1", [{"type": "text", "text": "out"}], is_error=True),
        log.prompt("This is what happened", isCompactSummary=True),
        log.prompt("two"),
    )
    assert short(history(world, session=log.session)) == [
        ("system", "This is what happened"),
        ("user", "two"),
    ]
    found = history(world, "--all", session=log.session)
    assert found[1]["content"] == "a"
    assert [c["id"] for c in found[1]["tool_calls"]] == ["t1"]
    assert short(found)[2:] == [("tool", "out"), ("user", "two")]


def test_names_of_tools_are_what_every_api_takes(world):
    """Letters, digits, dashes and underscores, the same for a call and its result."""
    with recorder(world) as record:
        record.user("go")
        call(record, "Run a Command: " + "x" * 80, "c1", "A")
    _, asked, answered = history(world)
    name = "Run_a_Command__" + "x" * 49
    assert (asked["tool_calls"][0]["function"]["name"], answered["name"]) == (name, name)


def test_a_session_without_messages_is_told(world):
    """In one line, with the exit code for nothing found."""
    with recorder(world) as record:
        record.mode("auto")
    done = world.run("sess", "history", SESSION, check=1)
    assert done.stderr == f'sess: session "{SESSION}" has no messages\n'


# What may happen in a session, in any order.
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.text("ab", max_size=2)),
        st.tuples(st.just("assistant"), st.text("ab", max_size=2)),
        st.tuples(st.just("call"), st.sampled_from(["c1", "c2", "c3", ""])),
        st.tuples(st.just("result"), st.sampled_from(["c1", "c2", "c3", ""])),
        st.tuples(st.just("compact"), st.integers(0, 5)),
        st.tuples(st.just("subagent"), st.booleans()),
    ),
    max_size=25,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HAPPENINGS, st.integers(0, 4))
def test_any_session_becomes_valid_messages(tmp_path_factory, happenings, protected):
    """Each call is answered right after it, once, by its id; nothing else is a tool's."""
    world = World(tmp_path_factory.mktemp("any"))
    with recorder(world) as record:
        record.user("begin")
        for what, value in happenings:
            if what == "user":
                record.user(value)
            elif what == "assistant":
                record.assistant(value)
            elif what == "call":
                record.tool_call("read", {}, value)
            elif what == "result":
                record.tool_result("read", "out", value)
            elif what == "compact":
                record.compact("summary", kept=value)
            elif value:
                record.subagent_start("x")
            else:
                record.subagent_result("x")
    found = read_messages(world)
    check_valid(found)
    check_valid(pruning.pruned(found, protected))


def check_valid(found: list[Message]) -> None:
    waiting: list[str] = []
    for one in as_chat(found):
        if one["role"] == "tool":
            assert one["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call_["id"] for call_ in one.get("tool_calls", ())]
            assert one["content"] or waiting
    assert waiting == []
    blocks = [*as_blocks(found)]
    assert [one["role"] for one in blocks] == [
        ("user", "assistant")[place % 2] for place in range(len(blocks))
    ]
    assert all(one["content"] for one in blocks)
    used = [b["id"] for one in blocks for b in one["content"] if b["type"] == "tool_use"]
    answered = [b["tool_use_id"] for one in blocks for b in one["content"] if "tool_use_id" in b]
    assert used == answered
    assert len(set(used)) == len(used)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_every_line_is_one_message(world, form):
    """In a pipe: JSON objects with a role."""
    with recorder(world) as record:
        record.user("one")
        record.assistant("two")
    assert [one["role"] for one in history(world, "--format", form)] == ["user", "assistant"]


def test_secrets_are_masked_wherever_they_occur(world):
    """In texts, arguments and results, and in a brief; paths stay, so that calls still work."""
    secret = "qR7!vT2#xZ9wLm"
    with recorder(world) as record:
        record.user(f"Set DB_PASSWORD={secret} in /home/ada/tea/.env")
        call(record, "bash", "c1", f"connected with {secret}", command=f"./try.sh {secret}")
        record.assistant(f"I tried {secret}")
    masked = str(history(world))
    assert secret not in masked
    assert masked.count("[redacted: password]") == 4
    assert "/home/ada/tea/.env" in masked
    assert str(history(world, "--no-redact")).count(secret) == 4
    brief = world.run("sess", "handoff", SESSION, "--no-sync", check=0).stdout
    assert secret not in brief
    assert "[redacted: password]" in brief
