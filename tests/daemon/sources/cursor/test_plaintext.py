"""Transcripts of older versions of cursor-agent, in plain text."""

from __future__ import annotations

import json

import pytest
from tests.daemon.sources.cursor.agent_files import (
    CHAT,
    MIRROR,
    SHOWN,
    SUB,
    transcript,
    write_chat,
)
from tests.must import must

from sessiond.sourcekit.base import NotReady, SessionSpec
from sessiond.sources.cursor.agent_messages import conversation

TEXT = """user:
<timestamp>Monday, Feb 2, 2026, 2:40 AM (UTC)</timestamp>
<user_query>
fix the parser
</user_query>

assistant:
[Thinking] Where is it?
Perhaps here.

I will look.
[Tool call] Shell
  command: make test
  description: Run the tests

[Tool call] Write
  path: /code/a.py
  contents: def f():
    return 1

    # done

[Tool result] Shell
3 passed

[Tool result] Write

assistant:
It is fixed.

user:
<user_query>thanks</user_query>
"""
MINUTE = 1_770_000_000_000  # 2026-02-02T02:40:00Z


def write(home, text=TEXT, session=CHAT, parent=None, flat=False):
    folder = home / ".cursor/projects/code-demo/agent-transcripts"
    folder = folder if flat else folder / (parent or session)
    folder = folder / "subagents" if parent else folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.txt").write_text(text)
    return folder / f"{session}.txt"


@pytest.mark.parametrize("flat", [False, True])
def test_a_transcript_in_plain_text(index, flat):
    """Calls are joined with the results of the same tool, in order."""
    write(index.world.root, flat=flat)
    index.read()
    assert index.shown() == [
        ("user", "fix the parser", None),
        ("thinking", "Where is it?\nPerhaps here.", None),
        ("assistant", "I will look.", None),
        ("tool_use", "3 passed", "ok"),
        ("tool_use", "", "ok"),
        ("assistant", "It is fixed.", None),
        ("user", "thanks", None),
    ]
    assert index.facts("title", "prompts", "tool_calls", "started_at", "ended_at") == (
        *("fix the parser", 2, 2, MINUTE, MINUTE),
    )


def test_the_calls_of_a_transcript_are_described(index):
    write(index.world.root)
    index.read()
    assert index.world.sql(
        "SELECT kind, tool, summary, duration_ms FROM events WHERE type = 'tool_use' ORDER BY id"
    ) == [
        ("shell", "Shell", "make test # Run the tests", None),
        ("write", "Write", "/code/a.py (33 bytes)", None),
    ]
    done = index.world.run("sess", "show", CHAT, "--json", check=0)
    inputs = [one["input"] for one in map(json.loads, done.stdout.splitlines()) if one["tool"]]
    assert inputs == [
        {"command": "make test", "description": "Run the tests"},
        {"path": "/code/a.py", "contents": "def f():\n    return 1\n\n    # done"},
    ]


def test_a_transcript_that_grows(index):
    """The last message changes, the others stay."""
    for end in ("assistant:\nIt", "It is", "fixed.\n", "thanks"):
        write(index.world.root, TEXT[: TEXT.index(end) + len(end)])
        index.read()
    write(index.world.root)
    index.read()
    assert index.texts()[-2:] == ["It is fixed.", "thanks"]
    assert index.world.sql("SELECT count(*) FROM records WHERE retired = 0") == [(4,)]


@pytest.mark.parametrize("first", ["text", "better"])
@pytest.mark.parametrize("better", ["transcript", "chat"])
def test_it_is_only_shown_alone(index, first, better):
    """Newer transcripts, chats and databases have more."""
    home = index.world.root
    if first == "text":
        write(home)
        index.read()
    if better == "chat":
        write_chat(home)
    else:
        transcript(home, *MIRROR)
    index.read()
    write(home)
    index.read()
    texts = ["fix it", "it is fixed"] if better == "transcript" else [text for _, text, _ in SHOWN]
    assert index.texts() == texts


def test_a_subagent_in_plain_text(index):
    write(index.world.root)
    write(index.world.root, "user:\nlook\n\nA:\nfound it\n", session=SUB, parent=CHAT)
    index.read()
    assert index.texts(SUB) == ["look", "found it"]
    assert index.facts("kind", session=SUB) == "subagent"


def test_a_transcript_is_restored_byte_for_byte(index, tmp_path):
    path = write(index.world.root)
    index.read()
    before = path.read_bytes()
    path.unlink()
    index.world.run("sess", "restore", CHAT, "-o", tmp_path / "back.txt", check=0)
    assert (tmp_path / "back.txt").read_bytes() == before


def told(text):
    (change,) = conversation(SessionSpec("s"), text.encode())
    return [
        (record.role, event.type, event.text or event.input)
        for record in (must(item.record) for item in change.items)
        for event in record.events
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user:\r\nhi\r\n", [("user", "user", "hi")]),
        ("user: not a mark\nuser:\nhi", [("user", "user", "hi")]),
        ("assistant:\n\nuser:\nhi", [("user", "user", "hi")]),
        ("A:\n[Tool call] LS\n", [("assistant", "tool_use", "")]),
        ("A:\n[Tool call] LS\n  path: /a\n\nDone.", [("assistant", "tool_use", "/a"),
                                                    ("assistant", "assistant", "Done.")]),
        ("A:\n[Tool result] LS\na.py\n", [("assistant", "system", "a.py")]),
    ],
)  # fmt: skip
def test_odd_transcripts(text, expected):
    assert told(text) == expected


def test_a_text_without_messages_is_no_transcript():
    """It is told as unreadable; an empty one is not written yet."""
    assert list(conversation(SessionSpec("s"), b" \n")) == []
    with pytest.raises(NotReady, match="no messages"):
        list(conversation(SessionSpec("s"), b"shopping: milk"))
