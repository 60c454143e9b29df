"""A file that kills the process that reads it is read last, then parked; the others are read."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import closing

import pytest
from tests.conftest import opened

from sessiond.ingest import passes
from sessiond.sources.claude.transcript import ClaudeParser
from sessiond.writing.transaction import Store

POISON = "22222222-1111-4111-8111-111111111111"


@pytest.fixture
def deadly(world, monkeypatch):
    """A transcript of a megabyte whose last line kills its reader, and an innocent one."""
    original = ClaudeParser.parse

    def parse(self, value):
        if "poison" in str(value):
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, value)

    monkeypatch.setattr(ClaudeParser, "parse", parse)
    bad = world.transcript(POISON)
    bad.append(bad.prompt("innocent " * 150_000), bad.prompt("poison"))
    os.utime(bad.path, (4e9, 4e9))  # the newest file is read first
    good = world.transcript()
    good.append(good.prompt("good words"))
    return bad


def sync(world):
    """One sync in a process of its own; its exit code, or the signal that killed it."""
    child = os.fork()
    if child == 0:
        world.ingest()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state(world, path):
    return world.sql("SELECT state, failures, error FROM sources WHERE path = ?", str(path))


def test_a_file_that_kills_twice_is_parked_at_the_next_start(world, deadly):
    """Killed once: read last, so that the others are in the index. Killed twice: parked."""
    assert sync(world) == -signal.SIGKILL
    assert sync(world) == -signal.SIGKILL
    assert world.found("good") == ["good words"]
    assert state(world, deadly.path) == [("live", 2, passes.DIED)]
    summary = world.ingest()
    assert summary.skipped == [(str(deadly.path), passes.DIED)]
    assert state(world, deadly.path) == [("parked", 3, passes.DIED)]
    assert sync(world) == 0
    done = world.run("sessiond", "status")
    assert f"{deadly.path.name}: {passes.DIED}" in done.stdout


def test_a_parked_file_is_tried_again_when_it_is_named(world, deadly, monkeypatch):
    """After a repair `sessiond sync FILE` reads it, although neither file nor version changed."""
    for _ in range(2):
        sync(world)
    world.ingest()
    assert state(world, deadly.path) == [("parked", 3, passes.DIED)]
    world.run("sessiond", "sync", deadly.path, check=0)
    assert state(world, deadly.path) == [("live", 0, None)]
    assert world.found("poison") == ["poison"]
    world.check()


def test_kills_of_processes_that_make_progress_park_nothing(world, deadly):
    """After a kill its slices are committed one by one: it is only slow, or was killed often."""
    for _ in range(3):
        assert sync(world) == -signal.SIGKILL
        with deadly.path.open("r+b") as file:  # the deadly line becomes harmless, another follows
            data = file.read().replace(b'"poison"', b'"harmed"')
            file.seek(0)
            file.write(data)
        deadly.append(deadly.prompt("innocent " * 150_000), deadly.prompt("poison"))
        ((_, failures, _),) = state(world, deadly.path) or [("", 0, None)]
        assert failures < 3


def test_a_parked_file_is_read_by_the_next_version(world, deadly, monkeypatch):
    """A new version may be able to read it, although the file did not change."""
    for _ in range(2):
        sync(world)
    world.ingest()
    monkeypatch.undo()
    assert world.ingest().changed == 0
    monkeypatch.setattr("sessiond.reading.tracked.__version__", "99")
    assert world.ingest().changed == 1
    assert world.found("poison") == ["poison"]


@pytest.mark.parametrize("age", [0, passes.HUNG_SECONDS + 5])
def test_a_small_file_is_suspect_only_if_its_reader_hung(world, age):
    """A kill while a few lines are read says nothing, unless they were being read for long."""
    t = world.transcript()
    t.append(t.prompt("good words"))
    world.state.mkdir(mode=0o700)
    left = {"path": str(t.path), "offset": 0, "unread": 300, "at": time.monotonic() - age}
    (world.state / "reading.json").write_text(json.dumps(left))
    assert [path for path, _ in world.ingest().skipped] == ([str(t.path)] if age else [])
    assert world.found("good") == ["good words"]
    assert world.ingest().skipped == []
    assert (world.state / "reading.json").read_text() == ""


def test_a_file_whose_readers_somebody_killed_is_read_at_the_next_sync(world):
    """Nothing is wrong with it: a process of its own reads it, then the index has it."""
    t = world.transcript()
    t.append(t.prompt("innocent words"))
    other = world.transcript(POISON)
    other.append(other.prompt("others"))
    world.state.mkdir(mode=0o700)
    left = {"path": str(t.path), "offset": 0, "unread": passes.MAY_KILL, "at": time.monotonic()}
    for _ in range(2):
        (world.state / "reading.json").write_text(json.dumps(left))
        t.append(t.prompt("more"))
        with closing(opened(world.state / "index.db")) as db:
            ingest = passes.Ingest(Store(db))
            ingest.stop.set()  # it dies again before it has read anything
            ingest.reconcile(world.places())
    ((parked, _, why),) = state(world, t.path)
    assert (parked, why) == ("parked", passes.DIED)
    world.run("sessiond", "sync", check=0)
    assert state(world, t.path) == [("live", 0, None)]
    assert world.found("innocent") == ["innocent words"]


def test_a_file_that_kills_its_reader_stays_parked_and_is_told(world, deadly, monkeypatch):
    for _ in range(2):
        sync(world)
    world.ingest()
    tried: list[str] = []

    def try_it(file):
        tried.append(file.path)
        return False

    with closing(opened(world.state / "index.db")) as db:
        ingest = passes.Ingest(Store(db))
        ingest.survives = try_it
        for _ in range(2):  # once in an hour
            ingest.reconcile(world.places())
    assert tried == [str(deadly.path)]
    assert state(world, deadly.path) == [("parked", 3, passes.DIED)]


@pytest.mark.parametrize("left", ["", "{", "[1]", '{"path": 5}', '{"path": "/x", "offset": 1}'])
def test_a_damaged_note_is_ignored(world, left):
    """Whatever stands in the note, the pass goes on."""
    t = world.transcript()
    t.append(t.prompt("good words"))
    world.state.mkdir(mode=0o700)
    (world.state / "reading.json").write_text(left)
    assert world.ingest().skipped == []


def test_an_interrupted_pass_leaves_no_note(world, monkeypatch):
    """Ctrl-C is not the fault of the file that is being read."""
    t = world.transcript()
    t.append(t.prompt("good words"))

    def interrupt(self, value):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ClaudeParser, "parse", interrupt)
        with pytest.raises(KeyboardInterrupt):
            world.ingest()
    assert (world.state / "reading.json").read_text() == ""
