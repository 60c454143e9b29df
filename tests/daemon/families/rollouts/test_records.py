"""Single records, including ones that no version of Codex ever wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.daemon.families.rollouts.rollouts import (
    CodexHome,
    Rollout,
    call,
    counts,
    event,
    item,
    message,
    output,
    thread_id,
    tokens,
)
from tests.must import must

from sessiond.families.rollouts.rollout import RolloutParser
from sessiond.sourcekit.base import SessionSpec
from sessiond.sources.codex import CodexSource

THREAD = thread_id(1)


def parsed(*lines):
    parser = RolloutParser(SessionSpec(THREAD), {})
    return [parser.parse(line) for line in lines]


def meta(**facts):
    return {"type": "session_meta", "payload": {"id": THREAD, **facts}}


def added(*lines):
    """Input, cached and output tokens that each line adds."""
    return [
        (found.input_tokens, found.cache_read_tokens, found.output_tokens)
        for record in parsed(*lines)
        if (found := record.usage)
    ]


# -- tokens


def test_a_fork_without_its_parents_counts_starts_with_its_own_usage():
    """Its first total includes the parent's usage."""
    lines = (tokens((900, 500, 80), (100, 50, 8)), tokens((1000, 560, 90), (100, 60, 10)))
    assert added(meta(forked_from_id="p"), *lines) == [(50, 50, 8), (40, 60, 10)]
    assert added(meta(), *lines) == [(400, 500, 80), (40, 60, 10)]


def test_a_state_of_an_earlier_release_is_continued():
    """It has no count of reasoning: nothing is counted twice, and reasoning is part of output."""
    state = {"tokens": {"total": [100, 50, 0, 10]}}
    total = counts(130, 60, 14) | {"reasoning_output_tokens": 9}
    line = event("token_count", info={"total_token_usage": total})
    usage = must(RolloutParser(SessionSpec(THREAD), state).parse(line).usage)
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (20, 4, 4)


def test_a_total_that_drops_starts_a_new_count():
    """Codex resets the total when it marks the context as full."""
    lines = (tokens((900, 0, 80)), tokens((0, 0, 0), (0, 0, 0)), tokens((70, 0, 7), (70, 0, 7)))
    assert added(*lines) == [(900, 0, 80), (70, 0, 7)]


@pytest.mark.parametrize("first", ["total", "record"])
def test_a_response_with_a_total_and_a_record_is_counted_once(first):
    """Newer releases write both, in either order."""
    usage = {"input_tokens": 30, "output_tokens": 3}
    records = [
        {"type": "token_usage_record", "payload": {"response_id": f"r{n}", "usage": usage}}
        for n in (1, 2)
    ]
    totals = [tokens((30 * n, 0, 3 * n), (30, 0, 3)) for n in (1, 2)]
    pairs = (
        zip(totals, records, strict=True) if first == "total" else zip(records, totals, strict=True)
    )
    assert added(*(line for pair in pairs for line in pair)) == [(30, 0, 3), (30, 0, 3)]


# -- calls

LONG = "cat <<'EOF'\n" + "string\n" * 90
EXITED = "Process exited with code 1\nOriginal token count: 4\nOutput:\nno paper"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno", "error"),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nProcess exited with code 1", "ok"),
        ("Process exited with code 1", "ok"),  # a program may print this
        ("patch rejected by user", "denied"),
        ("This action was rejected due to unacceptable risk.\nReason: rm", "denied"),
        ("aborted by user after 2.1s", "denied"),
        ("Wall time: 2.1 seconds\naborted by user", "denied"),
        ("unsupported call: fly", "error"),
        ('{"output":"x","metadata":{"exit_code":3}}', "error"),
        ('{"output":', "ok"),
        (f"Command: zsh -lc '{LONG}'\nChunk ID: 9f\nWall time: 0.2 seconds\n{EXITED}", "error"),
        (f"Command: zsh -lc 'ls'\nWall time: 0.2 seconds\n{EXITED}", "error"),
        (f"Command: zsh -lc '{LONG}'\nProcess exited with code 1", "ok"),
        ('err: "tool call error: no such server"', "error"),
        ('err: "user rejected MCP tool call"', "denied"),
        ("err: kite", "ok"),
        ('{"content":[{"type":"text","text":"no wind"}],"isError":true}', "error"),
        ('{"content":[{"type":"text","text":"wind"}],"isError":false}', "ok"),
        ("patch rejected: writing outside of the project", "denied"),
        ("`rm -rf kite` rejected: blocked by policy", "denied"),
        ("approval policy is Never; reject command — you should not ask", "denied"),
        ("unable to locate image at `/kite.png`: No such file or directory", "error"),
    ],
)
def test_the_text_of_a_result_gives_its_status(text, status):
    (record,) = parsed(output("c1", text))
    assert [result.status for result in record.results] == [status]


def test_a_declined_command_is_denied():
    """Its item has the status, before its output is written."""
    command = {"type": "CommandExecution", "id": "c1", "status": "declined", "exit_code": -1}
    *_, record = parsed(event("item_completed", item=command), output("c1", "no"))
    assert [result.status for result in record.results] == ["denied"]


def test_a_script_fails_with_one_of_its_commands():
    """A script is one call; each command that it runs ends with an item of its own."""
    script = item("custom_tool_call", name="exec", input="tools.exec_command()", call_id="c1")
    ends = [
        event("item_completed", item={
            "type": "CommandExecution", "id": f"exec-{number}", "exit_code": code,
            "status": "failed" if code else "completed", "duration": {"secs": 1, "nanos": 0},
        })
        for number, code in enumerate((0, 2, 0))
    ]  # fmt: skip
    done = item(
        "custom_tool_call_output",
        call_id="c1",
        output=[
            {"type": "input_text", "text": "Script completed\nWall time 3.5 seconds\nOutput:\n"}
        ],
    )
    *_, record = parsed(script, *ends, done)
    assert [(result.status, result.duration_ms) for result in record.results] == [("error", 3500)]
    *_, record = parsed(script, ends[0], done)
    assert [result.status for result in record.results] == ["ok"]


def test_an_unknown_item_of_an_output_is_shown_as_json():
    pieces = [
        {"type": "input_text", "text": "one"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_cup", "tea": "green"},
    ]
    *_, record = parsed(call("c1", "make tea"), output("c1", pieces))
    (result,) = record.results
    assert (result.output, result.images) == ('one\n{"type":"input_cup","tea":"green"}', 1)


def test_an_open_call_of_an_aborted_turn_takes_no_blame():
    """Nothing answers it any more."""
    lines = (
        call("c1", "sleep"),
        event("turn_aborted", reason="interrupted"),
        event("task_started", turn_id="t2"),
        event("item_completed", item={"type": "CommandExecution", "id": "x", "exit_code": 1}),
        output("c1", "late"),
    )
    *_, record = parsed(*lines)
    assert [result.status for result in record.results] == ["ok"]


def test_a_command_that_ends_later_fails_no_other_call():
    """It went on in the background after its call was answered."""
    ended = {"type": "CommandExecution", "id": "c1", "exit_code": 143, "status": "failed"}
    lines = (
        call("c1", "serve"),
        output("c1", "Process running with session ID 5"),
        call("c2", "ls"),
        event("item_completed", item=ended),
        output("c2", "Exit code: 0\nWall time: 0.1 seconds\nOutput:\na"),
    )
    *_, record = parsed(*lines)
    assert [result.status for result in record.results] == ["ok"]
    *_, record = parsed(*lines[:2], call("c1", "serve"), lines[3], output("c1", "stopped"))
    assert [result.status for result in record.results] == ["error"]  # the id is used again


def test_a_script_is_described_by_what_it_runs():
    """Its commands in one line, its patches as edits."""
    script = (
        'const r = await tools.exec_command({cmd:"ls \\"a b\\"", workdir: "/x"});\n'
        "text(await tools.apply_patch(`*** Begin Patch\n*** Add File: a.js\n"
        "+say(\\`hi\\`)\n*** End Patch`));"
    )
    (record,) = parsed(item("custom_tool_call", name="exec", input=script, call_id="c1"))
    (found,) = record.events
    assert (found.kind, found.summary) == ("edit", 'a.js (add) ; ls "a b"')
    assert found.files == (("a.js", "write"),)
    assert found.edits[0].patch == (
        "*** Begin Patch\n*** Add File: a.js\n+say(`hi`)\n*** End Patch"
    )


@pytest.mark.parametrize(
    "line",
    [
        event("sub_agent_activity", event_id="c1", agent_thread_id="child", kind="started"),
        event("item_completed", item={
            "type": "SubAgentActivity", "id": "c1", "agent_thread_id": "child", "kind": "started",
        }),
        event("item_completed", item={
            "type": "CollabAgentToolCall", "id": "c1", "tool": "spawn_agent",
            "sender_thread_id": THREAD, "receiver_thread_ids": ["child"], "status": "completed",
        }),
        item("function_call_output", call_id="c1", output='{"agent_id":"child"}'),
    ],
)  # fmt: skip
def test_a_subagent_is_linked_to_the_call_that_started_it(line):
    """In each way that releases record it."""
    spawn = item("function_call", name="spawn_agent", arguments="{}", call_id="c1")
    _, record = parsed(spawn, line)
    assert [(link.native_id, link.call_id) for link in record.links] == [("child", "c1")]


def test_reasoning_that_only_an_event_can_show_is_read():
    """The item is encrypted; where it has a text, the event repeats it."""
    said = event("agent_reasoning_raw_content", text="why")
    hidden = item("reasoning", summary=[], encrypted_content="x")
    *_, record = parsed(message("user", "go"), hidden, said)
    assert [(found.type, found.text) for found in record.events] == [("thinking", "why")]
    told = item("reasoning", summary=[{"type": "summary_text", "text": "why"}])
    *_, record = parsed(message("user", "go"), told, said)
    assert record.events == []


# -- messages


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("<user_instructions>be brief</user_instructions>", "nested_memory"),
        ("<environment_context>\nhere</environment_context>", "context"),
        ("<goal_context>\nwin</goal_context>", "goal_context"),
        ("<subagent_notification>{}</subagent_notification>", "subagent_notification"),
        ("<user_shell_command>\nls\n</user_shell_command>", "user_shell_command"),
        ("<user_action>\n  <context>User initiated a review task.</context>", "review"),
        ("Warning: Your account was flagged for potentially high-risk", "warning"),
        ("<div>what does this do?</div>", None),
        ("fix <environment_context>", None),
    ],
)
def test_text_that_codex_adds_as_the_user_is_not_a_prompt(text, label):
    (record,) = parsed(message("user", text))
    assert [(found.type, found.label) for found in record.events] == [
        ("system", label) if label else ("user", None)
    ]
    assert bool(record.titles) is (label is None)


@pytest.mark.parametrize("name", ["internal_chat_message_metadata_passthrough", "metadata"])
def test_the_kinds_of_content_tell_prompts_from_context(name):
    """Whatever the text looks like; kinds that do not fit the content are ignored."""
    pieces = [{"type": "input_text", "text": text} for text in ("here: /code", "<skill>go")]
    marked = {"content_item_kinds": ["environments.environment_context", "user.text"]}
    (record,) = parsed(item("message", role="user", content=pieces, **{name: marked}))
    assert [(found.type, found.text) for found in record.events] == [
        ("system", "here: /code"),
        ("user", "<skill>go"),
    ]
    marked["content_item_kinds"].pop()
    (record,) = parsed(item("message", role="user", content=pieces, **{name: marked}))
    assert [found.type for found in record.events] == ["system", "user"]
    assert record.events[0].text == "<skill>go"


def test_a_message_written_as_an_event_first_is_shown_once(home):
    """The event counts until the item of the same message is written."""
    rollout = Rollout(home, 1).add(event("user_message", message="fly"))
    rollout.save()
    home.ingest()
    assert home.texts(THREAD) == ["fly"]
    rollout.add(message("user", "fly"), event("agent_message", message="ok")).save()
    home.ingest()
    assert home.texts(THREAD) == ["fly"]
    assert home.sql("SELECT prompts, events FROM sessions") == [(1, 1)]


# -- random records


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
    | st.sampled_from(["user", "assistant", "message", "2026-01-01T00:00:00Z", THREAD]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([
        *("type", "id", "call_id", "role", "content", "text", "info", "usage", "name", "input"),
        *("arguments", "output", "item", "duration", "secs", "turn_id", "goal", "source", "git"),
        *("total_token_usage", "last_token_usage", "input_tokens", "questions", "plan", "action"),
        *("subagent", "thread_spawn", "review_output", "findings", "summary", "command", "result"),
    ]), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
KINDS = st.sampled_from([
    *("message", "reasoning", "function_call", "function_call_output", "custom_tool_call"),
    *("local_shell_call", "web_search_call", "image_generation_call", "agent_message", "strange"),
    *("tool_search_output", "user_message", "token_count", "item_completed", "turn_aborted"),
    *("thread_rolled_back", "mcp_tool_call_end", "exited_review_mode", "task_started"),
    *("thread_goal_updated", "collab_agent_spawn_end", "error", "thread_name_updated"),
])  # fmt: skip
LINES = st.builds(
    lambda outer, kind, rest, wrapped: (
        {"type": outer, "payload": rest | {"type": kind}} if wrapped else rest | {"type": outer}
    ),
    st.sampled_from([
        *("session_meta", "response_item", "event_msg", "turn_context", "compacted"),
        *("token_usage_record", "world_state", "inter_agent_communication", "strange"),
    ]),
    KINDS,
    st.dictionaries(st.sampled_from([
        *("id", "call_id", "role", "content", "message", "info", "name", "arguments", "input"),
        *("output", "item", "turn_id", "usage", "response_id", "num_turns", "summary", "action"),
        *("source", "git", "goal", "review_output", "duration", "result", "namespace", "tools"),
        *("content_item_kinds", "new_thread_id", "thread_name", "timestamp", "exit_code"),
    ]), VALUES, max_size=6),
    st.booleans(),
)  # fmt: skip


@settings(max_examples=amount(100, 900), deadline=None)
@given(lines=st.lists(LINES | st.dictionaries(st.text(max_size=5), VALUES, max_size=3), max_size=6))
def test_no_record_makes_the_parser_fail(lines):
    """Any value may be anywhere, and another parser can continue from the state in JSON."""
    first = RolloutParser(SessionSpec(THREAD), {})
    second = RolloutParser(SessionSpec(THREAD), {})
    for line in lines:
        record = first.parse(line)
        assert all(isinstance(found.text, str) for found in record.events)
        assert second.parse(line) == record
        second = RolloutParser(SessionSpec(THREAD), json.loads(json.dumps(second.state())))
    head = b"\n".join(json.dumps(line).encode() for line in lines)
    CodexSource(environ={}).identify("/x/rollout-1.jsonl", head)


@pytest.mark.slow
def test_a_log_read_while_it_grows_gives_the_same_index(tmp_path):
    """A pass runs every few bytes, in the middle of lines and characters."""
    clean, grown = CodexHome(tmp_path / "a"), CodexHome(tmp_path / "b")
    homes = {}
    for home in (clean, grown):
        rollout = Rollout(home, 1).add(event("user_message", message="flieg"))
        rollout.turn(1, "flieg höher", call("c1", "ls"), output("c1", "Drachen"), "größer")
        homes[home] = rollout.add(tokens((9, 0, 1)), event("thread_rolled_back", num_turns=1))
    homes[clean].save()
    clean.ingest()
    data = b"".join(homes[grown].encoded())
    path = homes[grown].path
    path.parent.mkdir(parents=True)
    for start in range(0, len(data), 41):
        with path.open("ab") as file:
            file.write(data[start : start + 41])
        grown.ingest(settle=False)
    expected, found = clean.comparable(), grown.comparable()
    for name, rows in expected.items():
        assert found[name] == rows, name
