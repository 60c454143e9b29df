"""Chat sessions: the log of changes, copies in several windows, and calls that were shown."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.conftest import World, opened
from tests.must import must

from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.sourcekit.base import NotReady
from sessiond.sources.vscode import VSCodeSource, replayed
from sessiond.sources.vscode.chat import Response, read_chat
from sessiond.writing.transaction import Store

CHAT = "5e551050-0000-4000-8000-000000000001"


def log(*changes):
    return b"".join(json.dumps(change).encode() + b"\n" for change in changes)


def request(number, text):
    return {
        "requestId": f"r{number}",
        "timestamp": 1785578400000 + number,
        "message": {"text": text},
        "response": [{"value": f"on {text}"}],
        "result": {"metadata": {"promptTokens": 10, "outputTokens": 1}},
    }


# -- the log of changes


BEGUN = {"kind": 0, "v": {"requests": [{"response": ["a", "b", "c"]}], "title": "x"}}
PLACE = ["requests", 0, "response"]


@pytest.mark.parametrize(
    ("changes", "response"),
    [
        ([], ["a", "b", "c"]),
        ([{"kind": 2, "k": PLACE, "v": ["d"]}], ["a", "b", "c", "d"]),
        ([{"kind": 2, "k": PLACE, "i": 1, "v": ["d"]}], ["a", "d"]),
        ([{"kind": 2, "k": PLACE, "i": 1}], ["a"]),
        ([{"kind": 1, "k": [*PLACE, 1], "v": "d"}], ["a", "d", "c"]),
        ([{"kind": 3, "k": [*PLACE, 0]}], ["b", "c"]),
        ([{"kind": 1, "k": ["no", "where"], "v": 1}, {"kind": 9}, {"k": 4}], ["a", "b", "c"]),
        ([{"kind": 1, "k": [*PLACE, 1 << 40], "v": "d"}], ["a", "b", "c"]),
    ],
)
def test_changes_are_applied_in_order(changes, response):
    """Also those that lead nowhere, which change nothing."""
    state = replayed("/x.jsonl", log(BEGUN, *changes))
    assert state["requests"][0]["response"] == response


def test_a_line_that_is_being_written_waits():
    """The rest stands; a damaged line in the middle costs that line only."""
    torn = log(BEGUN) + b'{"kind":2,"k":["requ'
    assert len(replayed("/x.jsonl", torn)["requests"]) == 1
    damaged = log(BEGUN) + b"{nothing\n" + log({"kind": 1, "k": ["title"], "v": "y"})
    assert replayed("/x.jsonl", damaged)["title"] == "y"
    with pytest.raises(NotReady):
        replayed("/x.jsonl", b"")


# -- copies


class Windows(World):
    """A home with chats in several windows."""

    def __init__(self, root):
        super().__init__(root)
        self.user = root / ".config" / "Code" / "User"

    def save(self, window, *requests):
        chats = self.user / "workspaceStorage" / window / "chatSessions"
        chats.mkdir(parents=True)
        folder = {"folder": f"file:///code/{window}"}
        (chats.parent / "workspace.json").write_text(json.dumps(folder))
        chat = {"version": 3, "sessionId": CHAT, "requests": requests}
        (chats / f"{CHAT}.json").write_text(json.dumps(chat))

    def ingest(self, *, settle=True):
        self.state.mkdir(mode=0o700, exist_ok=True)
        source = VSCodeSource(environ={"HOME": str(self.root)}, platform="linux")
        with closing(opened(self.state / "index.db")) as db:
            return Ingest(Store(db), settle=settle).reconcile(Territory([source]).places)


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_copies_in_several_windows_are_one_session(tmp_path, order):
    """VS Code leaves a copy behind when a chat moves: each request is shown and counted once."""
    home = Windows(tmp_path)
    copies = {
        "old": [request(1, "fly")],
        "new": [request(1, "fly"), request(2_000, "land")],
    }
    for window in order:
        home.save(window, *copies[window])
        home.ingest()
    assert home.sql("SELECT native_id, project, prompts, events FROM sessions") == [
        (CHAT, "/code/new", 2, 4)
    ]
    assert home.sql("SELECT sum(input_tokens), sum(output_tokens) FROM usage WHERE counted") == [
        (20, 2)
    ]
    home.check()


# -- calls


def shown(tool, **facts):
    return {"kind": "toolInvocationSerialized", "toolId": tool, "toolCallId": tool, **facts}


def asked(*calls):
    rounds = [
        {"toolCalls": [{"id": name, "name": name, "arguments": given}]} for name, given in calls
    ]
    return {"metadata": {"toolCallRounds": rounds}}


def calls(value):
    response = Response(value, "s/r")
    response.read()
    return [(event.tool, event.summary, event.status) for event in response.record.events]


def test_calls_that_were_not_all_shown_are_joined_by_their_kind():
    """In order; one that was not shown stands for none."""
    value = {
        "response": [shown("copilot_readFile"), shown("run_in_terminal")],
        "result": asked(
            ("think", "{}"),
            ("read_file", '{"filePath": "/a"}'),
            ("run_in_terminal", '{"command": "ls"}'),
        ),
    }
    assert calls(value) == [("read_file", "/a", "ok"), ("run_in_terminal", "ls", "ok")]


def test_calls_that_were_never_shown_are_read_from_the_rounds():
    value = {"response": [{"value": ""}], "result": asked(("list_dir", '{"path": "/a"}'))}
    assert calls(value) == [("list_dir", "/a", "ok")]


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"isConfirmed": False}, "denied"),
        ({"isConfirmed": {"type": 0}}, "denied"),
        ({"isConfirmed": {"type": 4}, "isComplete": True}, "ok"),
        ({}, "pending"),
        ({"toolSpecificData": {"kind": "terminal", "terminalCommandState": {"exitCode": 1}}},
         "error"),
        ({"resultDetails": {"isError": True}}, "error"),
    ],
)  # fmt: skip
def test_how_a_call_was_shown_gives_its_status(facts, status):
    ((_, _, found),) = calls({"response": [shown("x", **facts)]})
    assert found == status


WHOLE = {"version": 3, "responderUsername": "GitHub Copilot", "requests": [], "sessionId": CHAT}
EVENT = {"type": "session.start", "data": {"sessionId": CHAT, "vscodeVersion": "1.124.0"}}
TRACE = {"v": 1, "ts": 1, "sid": "s", "type": "user_message", "attrs": {}}


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("chat.jsonl", log({"kind": 0, "v": WHOLE}), "document"),
        ("stdin", log({"kind": 0, "v": WHOLE}), "document"),
        ("chat.json", json.dumps(WHOLE).encode(), "document"),
        ("long.json", json.dumps(WHOLE).encode().partition(b', "sessionId"')[0], "document"),
        ("events.jsonl", log(EVENT), "transcript"),
        ("main.jsonl", log(TRACE), "transcript"),
        ("other.jsonl", log(WHOLE), None),
    ],
)
def test_a_file_that_is_handed_over_is_known_by_its_first_bytes(name, data, kind):
    """Whatever its folder; and of the extension's files, the parser too."""
    assert VSCodeSource().kind_anywhere(f"/elsewhere/{name}", data) == kind


def test_a_transcript_elsewhere_is_that_of_its_session():
    assert VSCodeSource().identify("/elsewhere/events.jsonl", log(EVENT)).native_id == CHAT


def test_a_log_of_changes_needs_no_name():
    """As standard input has none."""
    chat = {"kind": 0, "v": {"requests": [1]}}
    assert replayed("/stdin", log(chat, {"kind": 2, "k": ["requests"], "v": [2]})) == {
        "requests": [1, 2]
    }


def test_newer_builds_note_more_about_a_request():
    """Who began it, what it wrote, when it ended, and where."""
    told = {
        **request(1, "the command has ended"),
        "isSystemInitiated": True,
        "result": {},
        "completionTokens": 7,
        "responseTimestamp": 1785578409000,
    }
    chat = {"requests": [told], "workingDirectory": "file:///home/kim/kite"}
    (found,) = read_chat(chat, "c1", None, 0)
    asked, answered = (must(item.record) for item in found.items)
    assert [(event.type, event.label) for event in asked.events] == [
        ("system", "task-notification")
    ]
    assert not asked.titles
    assert (must(answered.usage).output_tokens, answered.ts) == (7, 1785578409000)
    assert found.project == "/home/kim/kite"
