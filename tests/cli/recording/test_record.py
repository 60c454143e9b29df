"""`sess record` as a program: from a pipe into the index."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
from tests.conftest import BIN
from tests.must import must
from tests.waiting import wait_until

CALL = {"name": "execute", "args": {"command": "ls"}, "tool_call_id": "c1"}


def lines(*values):
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in values)


def recorded(world, session):
    path = world.root / ".jcode" / "sessions" / f"{session}.json"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def record(world, *values, arguments=(), check=0):
    return world.run("sess", "record", *arguments, input=lines(*values), check=check)


def test_everything_recorded_is_found(world):
    """Prompt, answer, thoughts of a subagent, arguments, the whole of a long output, to-dos."""
    long = "\n".join(f"row {number}" for number in range(3000)) + "\nmarmalade"
    done = record(
        world,
        {"type": "system_prompt", "content": "Be a quokka."},
        {"type": "user", "content": "boil the samovar"},
        {"type": "tool_call", **CALL},
        {"type": "tool_result", "name": "execute", "output": long, "tool_call_id": "c1"},
        {"type": "subagent_start", "subagent_name": "look", "subagent_type": "explore"},
        {"type": "assistant", "content": "I am the wombat."},
        {"type": "subagent_result", "subagent_name": "look", "output": "found a numbat"},
        {"type": "todo_snapshot", "todos": [{"id": 1, "title": "pour it", "status": "pending"}]},
        {"type": "assistant", "content": "It boils."},
        arguments=("--project", "/code/tea", "--model", "m1", "--title", "Tea time"),
    )
    session = done.stdout.strip()
    assert done.stderr == ""
    found = world.run("sess", "search", '"row 1500"', "--json", check=0).stdout
    assert json.loads(found)["session"] == session
    for word in ("samovar", "quokka", "wombat", "numbat", "marmalade", "pour"):
        assert len(world.found(word)) == 1
    (listed,) = world.run("sess", "list", "--json", check=0).stdout.splitlines()
    shown = json.loads(listed)
    assert (shown["session"], shown["title"], shown["project"], shown["models"]) == (
        session,
        "Tea time",
        "/code/tea",
        ["m1"],
    )


def test_messages_of_a_chat_are_recorded(world):
    """As chat completions have them: parts, images, calls, results that name only their call."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    function = {"name": "read", "arguments": '{"path":"a"}'}
    done = record(
        world,
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "k1", "function": function}]},
        {"role": "tool", "tool_call_id": "k1", "content": "a file"},
        {"role": "assistant", "content": "Seen."},
    )
    found = recorded(world, done.stdout.strip())
    assert [one["type"] for one in found] == [
        "session_start", "system_prompt", "user", "tool_call", "tool_result", "assistant",
    ]  # fmt: skip
    assert found[2]["images"] == [{"media_type": "image/png", "data": "aGk="}]
    assert (found[4]["name"], found[4]["output"]) == ("read", "a file")


def test_bad_lines_are_named_and_the_rest_is_recorded(world):
    """Each with its number and why; the exit code says that some were skipped."""
    done = record(
        world,
        {"type": "user", "content": "one"},
        "not json",
        "[1]",
        {"content": "nobody's"},
        {"type": "tool_call", "args": {}},
        {"role": "wizard", "content": "x"},
        {"type": "session_start", "uuid": "x"},
        "",
        {"type": "from_the_future", "content": "two"},
        check=5,
    )
    assert done.stderr == (
        "sess: line 2 skipped: not JSON: not json\n"
        "sess: line 3 skipped: not a JSON object: [1]\n"
        'sess: line 4 skipped: neither "type" nor "role": {"content": "nobody\'s"}\n'
        'sess: line 5 skipped: tool_call without "name": {"type": "tool_call", "args": {}}\n'
        'sess: line 6 skipped: unknown role "wizard": {"role": "wizard", "content": "x"}\n'
        "sess: line 7 skipped: session_start is written by sess; use --project and --model:"
        ' {"type": "session_start", "uuid": "x"}\n'
        "sess: skipped 6 lines\n"
    )
    kinds = [one["type"] for one in recorded(world, done.stdout.strip())]
    assert kinds == ["session_start", "user", "from_the_future"]


def test_a_session_is_continued_and_has_teammates(world):
    """`--session` appends; `--teammate` records one who works for it."""
    record(world, {"type": "user", "content": "one"}, arguments=("--session", "tea"))
    record(world, {"type": "assistant", "content": "two"}, arguments=("--session", "tea"))
    assert [one["type"] for one in recorded(world, "tea")] == ["session_start", "user", "assistant"]
    record(
        world,
        {"type": "user", "content": "fetch a spoon"},
        arguments=("--session", "tea", "--teammate", "fork"),
    )
    found = world.run("sess", "search", "spoon", "--json", check=0).stdout
    assert json.loads(found)["session"] == "tea/fork"
    assert json.loads(found)["parent"] == "tea"


@pytest.mark.parametrize(
    ("arguments", "input_", "code", "said"),
    [
        ((), "", 1, "sess: nothing was recorded\nhint: see docs/record.md\n"),
        (("--session", "../x"), "", 2, 'sess: the ID "../x" contains a path separator\n'),
        (("--session", ""), "", 2, "sess: the ID is empty\n"),
        (
            ("--teammate", "x"),
            "",
            2,
            "sess: --teammate needs --session\nhint: the session that it works for\n",
        ),
    ],
)
def test_what_cannot_be_recorded_is_told(world, arguments, input_, code, said):
    """In one line, and nothing is written."""
    done = world.run("sess", "record", *arguments, input=input_, check=code)
    assert (done.stdout, done.stderr) == ("", said)
    assert not (world.root / ".jcode").exists()


def test_kill_9_loses_at_most_the_entry_being_written(world):
    """Every entry is on disk before the next is read, and the session can be continued."""
    process = subprocess.Popen(
        [BIN / "sess", "record", "--session", "tea"],
        env=world.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stdin = must(process.stdin)
    path = world.root / ".jcode" / "sessions" / "tea.json"
    try:
        for number in range(20):
            stdin.write(lines({"type": "user", "content": f"prompt {number}"}))
            stdin.flush()
        stdin.write('{"type":"user","content":"half a')
        stdin.flush()
        wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") == 21)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    with path.open("ab") as file:
        file.write(b'{"type":"user","conte')  # a write that was cut short
    record(world, {"type": "assistant", "content": "after"}, arguments=("--session", "tea"))
    raw = path.read_bytes().splitlines()
    assert [json.loads(line)["content"] for line in raw[1:21]] == [f"prompt {n}" for n in range(20)]
    assert (raw[21], json.loads(raw[22])["content"]) == (b'{"type":"user","conte', "after")
    shown = world.run("sess", "show", "tea", "--json", check=0).stdout.splitlines()
    assert [one["text"] for one in map(json.loads, shown) if one["type"] != "system"] == [
        *(f"prompt {n}" for n in range(20)),
        "after",
    ]
