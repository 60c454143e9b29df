"""The home directory of a person with two agents, written anew below any path."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from tests import cursor_databases as cursor

MAIN = "5a000000-0000-4000-8000-000000000001"
FORK = "5a000000-0000-4000-8000-000000000002"
OTHER = "5a000000-0000-4000-8000-000000000003"
AGENT = "a5e00001"
BEGIN = datetime(2026, 2, 1, 9, 50, tzinfo=UTC)
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"
    " a file edit, the new_string was NOT written to the file). STOP what you are doing and wait"
    " for the user to tell you how to proceed."
)


class Session:
    """Records of Claude Code, a minute apart."""

    def __init__(self, session, begin=BEGIN, cwd="/code/teapot", **more):
        self.session = session
        self.name = session[-4:]
        self.clock = (begin + timedelta(minutes=n) for n in itertools.count())
        self.ids = (UUID(int=UUID(session).int << 8 & (1 << 128) - 1 | n) for n in range(1, 250))
        self.more = {"cwd": cwd, "gitBranch": "main", "version": "2.1.0", **more}
        self.records = []
        self.parent = None

    def add(self, kind, message, **more):
        uuid = str(next(self.ids))
        self.records.append(
            {
                "parentUuid": self.parent,
                "type": kind,
                "uuid": uuid,
                "timestamp": f"{next(self.clock):%Y-%m-%dT%H:%M:%S}.250Z",
                "sessionId": self.session,
                **self.more,
                "message": message,
                **more,
            }
        )
        self.parent = uuid

    def prompt(self, text, **more):
        self.add("user", {"role": "user", "content": text}, **more)

    def says(self, *content, tokens=(12, 90), stop="end_turn", message=None, **more):
        number = len(self.records)
        message = message or f"msg_{self.name}_{number}"
        usage = {
            "input_tokens": tokens[0],
            "output_tokens": tokens[1],
            "cache_creation_input_tokens": 1500,
            "cache_read_input_tokens": 20_000,
            "cache_creation": {
                "ephemeral_5m_input_tokens": 500,
                "ephemeral_1h_input_tokens": 1000,
            },
        }
        body = {
            "id": message,
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": list(content),
            "stop_reason": stop,
            "usage": usage,
        }
        self.add("assistant", body, requestId=f"req_{message}", **more)

    def calls(self, call, tool, **values):
        content = {"type": "tool_use", "id": call, "name": tool, "input": values}
        self.says(content, stop="tool_use")

    def result(self, call, content, *, failed=False, **more):
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        if failed:
            block["is_error"] = True
        self.add("user", {"role": "user", "content": [block]}, **more)

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(record, ensure_ascii=False) for record in self.records]
        path.write_text("\n".join(lines) + "\n", "utf-8")


def text(words):
    return {"type": "text", "text": words}


def write(home: Path) -> None:
    projects = home / ".claude" / "projects"
    main = _main()
    shared = len(main.records)
    fork = Session(FORK, BEGIN + timedelta(hours=3))
    fork.records = [{**record, "sessionId": FORK} for record in main.records]
    _rest_of_main(main)
    fork.result("call_last", "the fork waited in vain", failed=True)
    fork.prompt("and now with milk")
    fork.says(text("Milk it is."))
    assert len(fork.records) == shared + 3
    main.write(projects / "-code-teapot" / f"{MAIN}.jsonl")
    fork.write(projects / "-code-teapot" / f"{FORK}.jsonl")
    _subagent().write(projects / "-code-teapot" / MAIN / "subagents" / f"agent-{AGENT}.jsonl")
    other = projects / "-code-kettle" / f"{OTHER}.jsonl"
    _other().write(other)
    with other.open("a", encoding="utf-8") as file:
        file.write('{"type":"user","broken\n')
    _cursor(home)


def _main():
    """Everything up to a call that the fork has, too."""
    it = Session(MAIN)
    it.prompt("请修复React组件 in the naïve café test 🫖steeping")
    it.says({"type": "thinking", "thinking": "Where is the kettle?", "signature": "c2ln"})
    it.says(text("I look first."), message="msg_twice", stop=None, tokens=(12, 1))
    it.says(
        {"type": "tool_use", "id": "call_read", "name": "Read",
         "input": {"file_path": "/code/teapot/brew.py"}},
        message="msg_twice",
        stop="tool_use",
    )  # fmt: skip
    it.result("call_read", "1\tdef brew():\n2\t    return 503\n")
    it.calls("call_test", "Bash", command="pytest -x tests/test_brew.py", description="Reproduce")
    it.result("call_test", "Exit code 1\nE  assert 503 == 418", failed=True)
    it.calls("call_edit", "Edit", file_path="/code/teapot/brew.py",
             old_string="    return 503\n", new_string="    # RFC\n    return 418\n")  # fmt: skip
    it.result("call_edit", "The file /code/teapot/brew.py has been updated.")
    it.calls("call_write", "Write", file_path="/code/teapot/NOTES.md", content="# Grüße\n\nHeiß.\n")
    it.result("call_write", "File created successfully at: /code/teapot/NOTES.md")
    it.calls("call_denied", "Bash", command="rm -rf build")
    it.result("call_denied", REFUSED, failed=True)
    it.calls("call_agent", "Task", subagent_type="Explore", description="Find kettles",
             prompt="Find every kettle")  # fmt: skip
    it.result("call_agent", "two kettles", toolUseResult={"agentId": AGENT, "status": "completed"})
    it.calls("call_last", "Bash", command="make tea")
    return it


def _rest_of_main(it):
    it.result("call_last", "tea")
    it.result("call_nobody_made", "a result whose call is not known")
    it.calls("call_commit", "Bash", command="git commit -am 'Answer 418'")
    it.result("call_commit", "[main 1a2b3c4] Answer 418\n 1 file changed, 2 insertions(+)")
    it.says(text("An answer whose last line was never logged. " * 8), stop=None, tokens=(3, 1))
    it.calls("call_waiting", "mcp__tracker__close", issue=418)
    it.records.append({"type": "summary", "summary": "Teapot answers 418", "leafUuid": it.parent})


def _subagent():
    it = Session(
        "5a000000-0000-4000-8000-0000000000a5",
        BEGIN + timedelta(minutes=13, seconds=20),
        isSidechain=True,
        agentId=AGENT,
    )
    it.session = MAIN
    it.prompt("Find every kettle")
    it.calls("call_grep", "Grep", pattern="kettle", path="/code/teapot")
    it.result("call_grep", "kettle.py\nkettles.py")
    it.says(text("There are two kettles."))
    return it


def _other():
    it = Session(OTHER, BEGIN + timedelta(days=30), cwd="/code/kettle")
    it.prompt("why does it whistle?")
    it.says(text("Because of the steam."), tokens=(40, 7))
    it.calls("call_multi", "MultiEdit", file_path="/code/kettle/whistle.py",
             edits=[{"old_string": "loud", "new_string": "quiet"},
                    {"old_string": "on", "new_string": "off"}])  # fmt: skip
    it.result("call_multi", "Applied 2 edits to /code/kettle/whistle.py")
    return it


def _cursor(home):
    path = cursor.global_database(home)
    at = cursor.CREATED
    bubbles = cursor.small_talk("steam", at)
    bubbles += [
        cursor.terminal("steam-6", "rm -rf /", status="cancelled", at=at + 5000),
        cursor.reading("steam-7", "/code/kettle/whistle.py", "quiet = True\n", at=at + 6000),
        cursor.bubble("steam-8", text="über den Dampf", at=at + 7000),
    ]
    db = cursor.make_global(path, journal="delete")
    cursor.put_conversation(db, cursor.composer("steam", bubbles, name="Steam"), bubbles)
    db.close()
