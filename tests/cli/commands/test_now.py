"""`sess now`: what goes on, from the index and the processes of the machine."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import MAIN, SECOND


@pytest.fixture
def going(world):
    """Makes a session whose last record is some seconds old."""

    def make(*records: Any, ago: float, session: str = MAIN, folder: str = "/code/demo") -> None:
        t = world.transcript(session, folder.replace("/", "-"))
        start = datetime.now(UTC) - timedelta(seconds=ago + len(records) - 1)
        for number, make_record in enumerate(records):
            moment = start + timedelta(seconds=number)
            record = make_record(t)
            record["timestamp"] = f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"
            record["cwd"] = folder
            t.append(record)

    return make


@pytest.fixture
def listed(sess):
    def ask(code: int = 0) -> list[dict[str, Any]]:
        done = sess.world.run("sess", "now", "--json", "--no-sync")
        assert done.returncode == code, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask


@pytest.fixture
def agent(tmp_path):
    """A process that is called as the agent is, in some folder."""
    started = []

    def start(folder: Path) -> int:
        program = tmp_path / "bin/claude"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\n")
        program.chmod(0o755)
        process = subprocess.Popen([program], cwd=folder, stdin=subprocess.PIPE)
        started.append(process)
        return process.pid

    yield start
    for process in started:
        process.communicate(timeout=60)


needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes cannot be told")


def prompt(t):
    return t.prompt("fix the lid")


def answer(t):
    return t.answer("All done, what next?")


def test_without_a_process_nothing_goes_on(world, going, listed):
    going(prompt, answer, ago=5)
    world.ingest()
    if Path("/proc").is_dir():
        assert listed(code=1) == []


@needs_proc
@pytest.mark.parametrize(
    "case",
    [
        (answer, 30, "waiting", "prompt", "All done, what next?"),
        (lambda t: t.call("c1", command="pytest -q"), 10, "working", None, "Bash: pytest -q"),
        (lambda t: t.call("c1", command="pytest -q"), 300, "unknown", None, "Bash: pytest -q"),
        (lambda t: t.prompt("more"), 20, "working", None, "thinks"),
        (lambda t: t.prompt("more"), 900, "unknown", None, "thinks"),
        (
            lambda t: t.call("c1", "AskUserQuestion", questions=[{"question": "Red or blue?"}]),
            60,
            "waiting",
            "question",
            "Red or blue?",
        ),
        (
            lambda t: t.call("c1", "ExitPlanMode", plan="# Paint it\n\nblue"),
            60,
            "waiting",
            "plan",
            None,
        ),
    ],
)
def test_what_a_session_does(world, going, listed, agent, case):
    last, ago, state, waits_for, doing = case
    folder = world.root / "here"
    folder.mkdir()
    pid = agent(folder)
    going(prompt, last, ago=ago, folder=str(folder))
    world.ingest()
    [one] = listed()
    assert (one["session"], one["agent"], one["pid"]) == (MAIN, "claude", pid)
    assert (one["state"], one["waits_for"]) == (state, waits_for)
    assert doing is None or one["doing"] == doing
    assert one["title"] == "fix the lid"


@needs_proc
def test_one_process_is_of_the_session_that_spoke_last(world, sess, going, listed, agent):
    folder = world.root / "here"
    folder.mkdir()
    agent(folder)
    going(prompt, answer, ago=600, folder=str(folder))
    going(prompt, lambda t: t.call("c1"), ago=5, session=SECOND, folder=str(folder))
    world.ingest()
    assert [one["session"] for one in listed()] == [SECOND]
    agent(folder)
    assert [(one["session"], one["state"]) for one in listed()] == [
        (MAIN, "waiting"),
        (SECOND, "working"),
    ]
    done = sess("now", "--line")
    assert done.stdout == "1 working · 1 waiting · prompt: fix the lid\n"
    text = sess("now").stdout.splitlines()
    assert len(text) == 4
    assert text[0].startswith("waiting (prompt)    11111111  claude  ")
    assert text[1].startswith("    fix the lid → All done, what next?")


def test_an_old_session_is_over(world, going, listed):
    going(prompt, answer, ago=90_000)
    world.ingest()
    assert listed(code=1) == []


def test_options_that_do_not_go_together(sess):
    assert sess.world.run("sess", "now", "--watch", "--json").returncode == 2
