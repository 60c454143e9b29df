"""A first answer comes from what is there, and says so; the rest is read by itself."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing

import pytest
from tests.must import must
from tests.waiting import LIMIT, wait_until

from sess_cli import fresh, start, terminal, waiting
from sess_cli.commands import list_
from sess_cli.parsing import expanded
from sess_cli.search.run import for_words
from sess_common import lock, paths, receipt, upkeep
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries import sources
from sessiond.service import control

NEW, OLD = "22222222-1111-4111-8111-111111111111", "11111111-1111-4111-8111-111111111111"
# The process that reads: it commits each file, and after the first waits until it may go on.
GATED = """
import os, sys, time
from sessiond.engines import ahead
from sessiond.ingest import passes
from sessiond.service import one_pass
passes.BULK, passes.FIRST_COMMITS = 0, (0,) * 99
ahead.is_possible = lambda: False
commit = passes.Ingest._commit
def gated(self, *arguments):
    commit(self, *arguments)
    while not os.path.exists(sys.argv[1]) and not self.stop.is_set():
        time.sleep(0.01)
passes.Ingest._commit = gated
sys.exit(one_pass.main(sys.argv[2:]))
"""


@pytest.fixture
def gate(world, monkeypatch):
    """Two sessions, and a process that reads the second one only when this file is there."""
    for session, when in ((OLD, 1_700_000_000), (NEW, 1_750_000_000)):
        t = world.transcript(session)
        t.append(t.prompt("some words"))
        os.utime(t.path, (when, when))
    gate = world.root / "gate"

    def command(_name):
        return [sys.executable, "-P", "-c", GATED, str(gate)]

    for name in os.environ.keys() - world.env.keys():
        monkeypatch.delenv(name)
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(fresh, "module", command)
    monkeypatch.setattr(waiting, "PATIENCE", 0.1)
    monkeypatch.setattr(fresh.Answer, "told", False)
    monkeypatch.setattr(fresh.Answer, "whole", False)
    monkeypatch.setattr(fresh.Answer, "reading", None)
    monkeypatch.setattr(terminal, "in_every_object", {})
    yield gate
    gate.touch()
    wait_until(lambda: lock.holder(paths.home().lock) is None)
    if fresh.Answer.reading is not None:
        fresh.Answer.reading.wait()


def has(**options):
    """The sessions that a command of this process finds."""
    with fresh.open_with_sessions(**options) as db:
        return sorted(session for (session,) in db.execute("SELECT native_id FROM sessions"))


def test_the_first_answer_has_the_newest_session_and_says_so(world, gate, capsys):
    """The command does not wait for the rest; who reads it goes on, and may be stopped."""
    assert has() == [NEW]
    line, hint = capsys.readouterr().err.splitlines()
    assert line.startswith("sess: indexed so far: sessions since 2025-06-15 15:06 (0.0 of 0.0 MB);")
    assert line.endswith("; the rest is being read")
    assert "--wait" in hint
    assert "`sessiond stop`" in hint


def test_every_answer_meanwhile_says_it_in_one_line(world, gate, capsys):
    """Of any command; in JSON, each object has since when everything is there."""
    has()
    gate_closed = "sessions since 2025-06-15 15:06"
    for words in (["search", "words"], ["list"], ["stats"]):
        done = world.run("sess", *words, "--json", check=0)
        (line,) = done.stderr.splitlines()
        assert gate_closed in line
        objects = [json.loads(line) for line in done.stdout.splitlines()]
        assert {one["indexed_since"] for one in objects} == {"2025-06-15T15:06:40.000Z"}
    assert gate_closed in world.run("sess", "show", "2222", check=0).stderr
    assert gate_closed in world.run("sess", "show", "1111", check=1).stderr


def test_who_wants_everything_waits_for_it(gate, monkeypatch, capsys):
    """However late it is, and whoever reads; then nothing is missing."""
    has()
    fresh.Answer.told = False
    capsys.readouterr()
    looks = []

    def status(path):
        looks.append(path)
        if len(looks) == 5:
            gate.touch()
        return {}

    monkeypatch.setattr(waiting, "PATIENCE", 0)
    monkeypatch.setattr(upkeep, "writer_status", status)
    assert has(whole=True) == [OLD, NEW]
    assert len(looks) >= 5
    assert capsys.readouterr().err == (
        "sess: waiting for the index, which another command is making\n"
    )


def test_wait_is_an_option_of_every_command_that_updates_the_index(monkeypatch):
    """Also of a search that needs no option parser."""
    asked = []

    def opened(**_):
        asked.append(fresh.Answer.whole)
        raise SessError("enough")

    monkeypatch.setattr(fresh, "open_index", opened)
    monkeypatch.setattr(fresh.Answer, "whole", False)
    for wait in (True, False):
        with pytest.raises(SessError, match="enough"):
            expanded(list_.list_)(wait=wait)
        plain = start.plain_search(["search", "words", *["--wait"] * wait])
        with pytest.raises(SessError, match="enough"):
            for_words(*must(plain))
    assert asked == [True, True, False, False]


def test_what_must_miss_nothing_waits_by_itself(gate, monkeypatch):
    """A cut, a deletion or a backup of half an index would be wrong."""
    opened = []
    until_ended = waiting.until_ended

    def noted(child, home, *, whole):
        opened.append(whole)
        gate.touch()
        return until_ended(child, home, whole=True)

    monkeypatch.setattr(waiting, "until_ended", noted)
    for whole in (True, False):
        receipt.remove(str(paths.home().lock))
        has(whole=whole)
    assert opened == [True, False]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_command_goes_on_after_a_load_that_was_ended(world, gate, capsys, number):
    """Killed, or ended at a logout: what was read stays, and the rest is read."""
    has()
    os.kill(must(lock.holder(paths.home().lock))["pid"], number)
    wait_until(lambda: lock.holder(paths.home().lock) is None)
    fresh.Answer.told = False
    capsys.readouterr()
    assert has(sync=False) == [NEW]
    assert "; nothing reads the rest now" in capsys.readouterr().err
    gate.touch()
    assert has(whole=True) == [OLD, NEW]
    with closing(open_reader(paths.home().index)) as db:
        assert sources.coverage(db) is None


def test_stop_ends_what_reads_in_the_background(world, gate, capsys):
    """It is no daemon, but there is nothing else to stop it with."""
    has()
    pid = must(lock.holder(paths.home().lock))["pid"]
    assert f"pid {pid} reads in its place" in world.run("sessiond", "status").stdout
    told: list[str] = []
    control.stop(told.append)
    assert told == [f"stopped reading in the background (pid {pid}); the next command goes on"]
    assert lock.holder(paths.home().lock) is None
    with pytest.raises(SessError, match="no daemon is running"):
        control.stop(told.append)


def test_who_needs_the_index_alone_takes_it_over(world, gate):
    """A sync that somebody typed, or a daemon that starts, reads the rest itself."""
    has()
    world.run("sessiond", "sync", check=0)
    assert has(sync=False) == [OLD, NEW]


def test_a_daemon_takes_over_what_a_command_began(world, gate):
    """Else its service manager would see it fail, and start it until it gives up."""
    has()
    daemon = world.start()
    try:
        wait_until(lambda: (lock.holder(paths.home().lock) or {}).get("mode") == "daemon")
        assert has(whole=True) == [OLD, NEW]
    finally:
        daemon.terminate()
        daemon.wait(LIMIT)


def test_ctrl_c_while_it_is_waited_for_ends_it(gate, monkeypatch):
    """Who gives up before the answer wants nothing to go on."""

    def interrupted(*_):
        wait_until(lambda: lock.holder(paths.home().lock))
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "_has_sessions", interrupted)
    with pytest.raises(KeyboardInterrupt):
        has()
    assert lock.holder(paths.home().lock) is None


def test_nothing_is_answered_from_an_index_without_sessions(gate, monkeypatch):
    """It waits until there is one, however long that takes."""
    asked = []

    def has_sessions(home):
        asked.append(home)
        if len(asked) == 3:
            gate.touch()
        return False

    monkeypatch.setattr(waiting, "_has_sessions", has_sessions)
    assert has() == [OLD, NEW]
    assert len(asked) >= 3
