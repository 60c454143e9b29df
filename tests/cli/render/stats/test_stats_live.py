"""`sess statusline` and `sess stats --watch`: what is told again and again."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import BIN
from tests.waiting import LIMIT

from sess_cli.statusline import Spent, Status
from sess_schema.queries.views.windows import Window

SESSION = "11111111-1111-4111-8111-111111111111"


def stamp(minutes=0):
    return f"{datetime.now(UTC) - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S}.000Z"


def spend(world, transcript, tokens):
    """One response now, of a model at 25 dollars a million."""
    transcript.append(
        transcript.prompt("go", timestamp=stamp()),
        transcript.assistant(
            [{"type": "text", "text": "done"}], output_tokens=tokens, timestamp=stamp()
        ),
    )
    world.ingest()


def test_the_status_line_tells_today_the_window_and_the_session(world):
    """The session that stdin names; 100,000 tokens at 25 dollars a million are 2.50."""
    t = world.transcript(SESSION)
    spend(world, t, 100_000)
    told = json.dumps({"session_id": SESSION, "cwd": "/code/demo", "model": {"id": "x"}})
    line = world.run("sess", "statusline", input=told, check=0).stdout
    today, tokens, window, session, context = line.strip().split(" · ")
    assert (today, tokens) == ("today $2.50", "100k tok")
    assert window.startswith("5h window $2.50, ")
    assert window.endswith(" left")
    assert (session, context) == ("session $2.50", "context 3 (0%)")
    found = json.loads(world.run("sess", "statusline", "--json", input=told, check=0).stdout)
    assert found["session"]["tokens"] == found["today"]["tokens"] == 100_003


def test_the_status_line_counts_responses_of_unknown_price(world):
    """As JSON: what is spent is at least that much."""
    t = world.transcript(SESSION)
    spend(world, t, 100_000)
    for _ in range(2):
        record = t.answer("done", timestamp=stamp())
        record["message"]["model"] = "nobody-knows-1"
        t.append(record)
    world.ingest()
    told = json.dumps({"session_id": SESSION})
    found = json.loads(world.run("sess", "statusline", "--json", input=told, check=0).stdout)
    assert found["today"]["unpriced_requests"] == found["session"]["unpriced_requests"] == 2


def test_the_status_line_tells_how_fast_the_window_burns():
    """Dollars an hour between its first and last response; nothing while there is only one."""
    hour = 3_600_000
    window = Window(start=0, first=0, last=hour, cost_nano=3_000_000_000)
    status = Status(2 * hour, Spent(), window)
    assert "5h window $3.00, $3.00/h, 3h0m left" in status.line()
    window.last = 0
    assert "5h window $3.00, 3h0m left" in status.line()


def test_the_status_line_takes_any_stdin(world):
    """Nothing, rubbish, another session, or somebody who never writes."""
    spend(world, world.transcript(SESSION), 10)
    for told in ("", "{", "[]", "[" * 100_000, '{"session_id": 5}', '{"session_id": "../../etc"}'):
        line = world.run("sess", "statusline", input=told, check=0).stdout
        assert line.startswith("today $0.0003 · 13 tok · 5h window ")
        assert "session" not in line
    silent, other = os.pipe()
    try:
        assert world.run("sess", "statusline", stdin=silent, check=0).stdout.startswith("today")
    finally:
        os.close(silent)
        os.close(other)


def test_the_status_line_without_an_index_is_one_line_of_why(world):
    """Exit code 4, as everywhere."""
    done = world.run("sess", "statusline", input="", check=4)
    assert done.stderr.startswith('sess: no index at "')
    assert done.stdout == ""


def test_the_status_line_warns_of_a_budget(world):
    """First on the line, and with success: an agent shows nothing of a command that failed."""
    spend(world, world.transcript(SESSION), 100_000)

    def told(*options):
        return world.run("sess", "statusline", *options, input="{}", check=0).stdout

    assert told("--budget", "1/day").startswith("over budget: $2.50 of $1.00/day · today $2.50 · ")
    assert told("--budget=5M/day").startswith("today $2.50 · 100k tok · budget 100k of 5.0M/day · ")
    facts = json.loads(told("--json", "--budget", "2.5/day"))["budget"]
    assert facts == {
        "period": "day", "unit": "usd", "limit": 2.5, "used": facts["used"], "exceeded": True,
    }  # fmt: skip
    assert facts["used"] == pytest.approx(2.5, abs=0.001)
    done = world.run("sess", "statusline", "--budget", "5/year", input="{}", check=2)
    assert done.stderr.startswith('sess: invalid budget: "5/year"\n')


def test_the_status_line_takes_the_size_of_the_context_from_the_agent(world):
    """If it is one; else it is told by the name of the model."""
    spend(world, world.transcript(SESSION), 10)
    for size, expected in ((10, 10), (0, 200_000), (-1, 200_000), ("9", 200_000), (None, 200_000)):
        told = json.dumps({"session_id": SESSION, "context_window": {"context_window_size": size}})
        found = json.loads(world.run("sess", "statusline", "--json", input=told, check=0).stdout)
        assert found["session"]["context_window_tokens"] == expected


@contextmanager
def watched(world, *arguments):
    """`sess stats --watch` in a terminal of 80 by 24, and what it writes."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [BIN / "sess", "stats", "--watch", "--no-sync", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**world.env, "TERM": "xterm", "NO_COLOR": "1"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal, wanted, seconds=LIMIT):
    text = ""
    until = time.monotonic() + seconds
    while wanted not in text:
        left = until - time.monotonic()
        assert left > 0, text
        if select.select([terminal], [], [], left)[0]:
            text += os.read(terminal, 1 << 16).decode(errors="replace")
    return text


def test_the_dashboard_is_drawn_again_when_the_index_changes(world):
    """In place, in 24 lines, without clearing the screen; Ctrl-C gives the terminal back."""
    t = world.transcript(SESSION)
    spend(world, t, 100_000)
    with watched(world) as (process, terminal):
        first = read_until(terminal, "Ctrl-C to quit")
        assert "\x1b[?1049h" in first
        assert "$2.50" in first
        assert first.count("\n") == 23
        spend(world, t, 100_000)
        assert "\x1b[2J" not in read_until(terminal, "$5.00")
        process.send_signal(signal.SIGINT)
        assert "\x1b[?25h\x1b[?1049l" in read_until(terminal, "\x1b[?1049l")
        assert process.wait(LIMIT) == 130


def test_a_view_can_be_watched(world):
    """Any of them."""
    spend(world, world.transcript(SESSION), 100_000)
    with watched(world, "windows") as (_, terminal):
        assert "estimated window" in read_until(terminal, "Ctrl-C to quit")
