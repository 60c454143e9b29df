"""A home with a few sessions, and `sess` as a person runs it: in a pipe or on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from tests import forked
from tests.waiting import LIMIT

SESS = str(Path(sys.executable).parent / "sess")
MAIN = "11111111-1111-4111-8111-111111111111"
SECOND = "22222222-2222-4222-8222-222222222222"


class Client:
    """Runs `sess` in a world whose index is up to date."""

    def __init__(self, world) -> None:
        self.world = world

    def __call__(self, *arguments, code=0, sync=False, **options):
        extra = [] if sync or arguments[0] in ("doctor", "demo") else ["--no-sync"]
        done = self.world.run("sess", arguments[0], *extra, *arguments[1:], **options)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *arguments):
        return [json.loads(line) for line in self(*arguments, "--json").stdout.splitlines()]

    def on_terminal(self, *arguments, width=80, colour=False, program=(SESS,), keys=b"", **env):
        """The output on a terminal, and the exit code; `keys` are pressed when output pauses."""
        environment = {**self.world.env, "COLUMNS": str(width), "TERM": "xterm", "PAGER": "cat"}
        if not colour:
            environment["NO_COLOR"] = "1"
        outer, inner = pty.openpty()
        environment |= env
        if program == (SESS,) and forked.possible("sess", environment, {}):
            process: forked.Running | subprocess.Popen[bytes] = forked.start(
                "sess", arguments, environment, [inner] * 3
            )
        else:
            process = subprocess.Popen(
                [*program, *arguments], stdin=inner, stdout=inner, stderr=inner, env=environment
            )
        os.close(inner)
        received = b""
        try:
            while True:
                # A key pressed before the program listens is lost, so it is pressed again.
                while keys and not select.select([outer], [], [], 0.3)[0]:
                    os.write(outer, keys)
                if not (piece := os.read(outer, 65536)):
                    break
                received += piece
        except OSError:  # Linux reports this when the other side is closed
            pass
        os.close(outer)
        return received.decode().replace("\r\n", "\n"), process.wait(LIMIT)


@pytest.fixture
def sess(world):
    return Client(world)


@pytest.fixture
def story(world):
    """Two sessions: one with a failed call and a subagent, one whose text attacks terminals."""
    t = world.transcript(MAIN)
    t.append(
        t.prompt("please fix the flaky retry test"),
        t.assistant([{"type": "thinking", "thinking": "one\ntwo\nthree\nfour\nfive\nsix"}]),
        t.answer("I will run **the tests** first."),
        t.call("c1", command="go test ./...", description="run them"),
        t.result("c1", "FAIL: retry was called 2 times", is_error=True),
        t.call("c2", "Task", subagent_type="Explore", description="find callers", prompt="look"),
        t.result(
            "c2", "\n".join(f"caller {n}" for n in range(20)), toolUseResult={"agentId": "abc12345"}
        ),
        t.record("system", None, subtype="informational", content="a notice"),
        t.record("system", None, subtype="compact_boundary", content="Conversation compacted"),
        t.call("c3", "Edit", file_path="/code/demo/a.go", old_string="two", new_string="three"),
    )
    agent = world.transcript("agent-abc12345", f"-code-demo/{MAIN}/subagents")
    agent.append(agent.prompt("look", isSidechain=True, sessionId=MAIN))
    evil = world.transcript(SECOND, "-code-evil")
    evil.append(
        evil.prompt(
            "\x1b]0;owned\x07title \x1b[31mred\x1b[0m \u202eevil\x07",
            cwd="/code/evil\x1b[2J",
            timestamp="2026-02-02T10:00:00.000Z",
        ),
    )
    world.ingest()
    return world


def without_colour(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


@pytest.fixture
def plain():
    return without_colour
