"""Logs that another process parses: the same index, whatever happens to either process."""

from __future__ import annotations

import gc
import marshal
import os
import shutil
import signal
import weakref
from typing import Any

import pytest
from tests import golden_home
from tests.golden_home import GoldenWorld
from tests.waiting import wait_until

from sess_common.errors import SessError
from sessiond.engines import ahead
from sessiond.engines.lines import read_log
from sessiond.engines.steps import AddSlice
from sessiond.ingest import passes
from sessiond.reading.survey import survey
from sessiond.reading.tracked import Tracked

NO_INDEX: Any = None  # a log that is read from its beginning asks the index for nothing
TEXT = "the kettle is on the hob and the tea is in the pot; " * 400


def fill(world, files=6, turns=25):
    """Five megabytes of transcripts."""
    for number in range(files):
        t = world.transcript(f"{number:08}-1111-4111-8111-111111111111")
        for turn in range(turns):
            call = f"toolu_{number}_{turn}"
            t.append(
                t.prompt(f"question {turn}"),
                t.call(call, command=f"make step{turn}"),
                t.result(call, f"output {turn} {TEXT}{TEXT[turn:]}"),
                t.answer(f"answer {turn}"),
            )


def loaded_alone(world, tmp_path, monkeypatch):
    """What one process makes of the same files."""
    monkeypatch.setattr(ahead, "is_possible", lambda: False)
    clean = type(world)(tmp_path / "clean")
    shutil.rmtree(clean.projects)
    shutil.copytree(world.projects, clean.projects)
    clean.ingest()
    return clean.dump()


@pytest.fixture
def started(monkeypatch):
    """The processes that read ahead, which are started on a machine with one core, too."""
    processes = []
    start = ahead._start

    def starting(jobs):
        process = start(jobs)
        processes.append(process)
        return process

    monkeypatch.setattr(ahead, "_start", starting)
    monkeypatch.setattr(ahead, "is_possible", lambda: True)
    return processes


def logs_of(world):
    return [file for file in survey(world.places()).files if file.kind == "transcript"]


@pytest.mark.parametrize("agent", golden_home.agents())
def test_every_step_survives_the_way_between_processes(tmp_path, agent):
    """What any agent's parser says is the same after it was flattened and marshalled."""
    world = GoldenWorld(tmp_path, agent)
    world.lay_all()
    for file in logs_of(world):
        for step in read_log(file, Tracked(file.path, agent, file.kind), NO_INDEX, settle_all=True):
            moved = marshal.loads(marshal.dumps(ahead.flat(step)))
            again = ahead.step_of(file, step.row, moved)
            if isinstance(again, AddSlice) and again.slice_.packed is not None:
                assert isinstance(step, AddSlice)
                again.slice_.raw = step.slice_.raw
            assert again == step


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot"])
def test_agents_read_ahead_are_read_alike(tmp_path, monkeypatch, started, agent):
    """Golden homes give the same index with and without the second process."""
    world = GoldenWorld(tmp_path, agent)
    world.lay_all()
    monkeypatch.setattr(passes, "BULK", 1)
    texts = []
    for possible in (True, False):
        monkeypatch.setattr(ahead, "is_possible", lambda possible=possible: possible)
        (world.state / "index.db").unlink(missing_ok=True)
        world.ingest()
        texts.append(world.sql("SELECT * FROM event_texts ORDER BY id"))
    assert len(started) == 1
    first, second = texts
    assert first == second
    assert first


def test_a_bulk_load_is_read_ahead(world, tmp_path, monkeypatch, started):
    """Five megabytes are parsed by a second process, which is gone afterwards."""
    fill(world)
    world.ingest()
    (process,) = started
    assert process.returncode is not None
    assert world.dump() == loaded_alone(world, tmp_path, monkeypatch)


def test_what_is_appended_is_not_read_ahead(world, started):
    """A few lines do not pay for a process."""
    fill(world, files=1)
    world.ingest()
    assert started == []


@pytest.mark.parametrize("slices", [0, 1, 3])
def test_a_reader_that_is_killed_changes_nothing(world, tmp_path, monkeypatch, started, slices):
    """The writer reads on by itself, from the middle of a file if need be."""
    fill(world)
    receive = ahead._receive
    taken: list[int] = []

    def killing(pipe):
        if len(taken) == slices:
            started[0].kill()
            started[0].wait()
            return None
        taken.append(1)
        return receive(pipe)

    monkeypatch.setattr(ahead, "_receive", killing)
    world.ingest()
    assert world.dump() == loaded_alone(world, tmp_path, monkeypatch)


def test_a_reader_that_cannot_start_changes_nothing(world, tmp_path, monkeypatch, started):
    """No more processes or memory: the writer does without."""
    fill(world)
    monkeypatch.setattr(ahead, "module", lambda _name: ["/nonexistent/python"])
    world.ingest()
    assert started == [None]
    assert world.dump() == loaded_alone(world, tmp_path, monkeypatch)


@pytest.mark.parametrize("what", ["agent", "file"])
def test_a_reader_that_fails_changes_nothing(world, tmp_path, monkeypatch, started, what):
    """What the other process cannot import, or cannot read, is read here."""
    fill(world)
    agent, job = ahead._flat_agent, ahead._job
    wrong = {
        "agent": ("_flat_agent", lambda source: ("no.such.module", *agent(source)[1:])),
        "file": ("_job", lambda *given: ((7, *job(*given)[0][1:]), job(*given)[1])),
    }
    monkeypatch.setattr(ahead, *wrong[what])
    world.ingest()
    monkeypatch.undo()
    assert world.dump() == loaded_alone(world, tmp_path, monkeypatch)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
@pytest.mark.parametrize("victim", ["writer", "reader"])
def test_killing_a_process_of_a_real_load(world, tmp_path, monkeypatch, victim):
    """kill -9 of either: no process stays, and after the next sync the index is whole."""
    if not ahead.is_possible():
        pytest.skip("one core")
    fill(world, files=12, turns=20)
    daemon = world.start()
    wait_until(lambda: children(daemon.pid) or finished(world))
    readers = children(daemon.pid)
    for pid in [daemon.pid] if victim == "writer" else readers:
        os.kill(pid, signal.SIGKILL)
    if victim == "writer":
        daemon.wait()
    wait_until(lambda: not any(map(is_running, readers)))
    if victim == "reader":
        wait_until(lambda: finished(world))
        daemon.terminate()
        daemon.wait()
    world.run("sessiond", "sync", check=0)
    world.check()
    assert world.dump() == loaded_alone(world, tmp_path, monkeypatch)


def test_what_was_read_of_earlier_files_is_let_go(monkeypatch):
    """Parsers refer to themselves; thousands of files must not add up in memory."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Parser:
        def __init__(self):
            self.readers = {"user": self.read}
            alive.add(self)

        def read(self): ...

    class Sender(ahead._Sender):
        def __init__(self): ...  # no thread

        def send(self, number, values): ...

    monkeypatch.setattr(ahead, "_agent_of", lambda _values: None)
    monkeypatch.setattr(ahead, "_read", lambda *_given, **_settings: Parser())
    gc.disable()
    try:
        ahead._read_all([()], [(0,)] * 250, Sender(), settle=True, mask=None)
        assert len(alive) <= ahead._COLLECT_AFTER
    finally:
        gc.unfreeze()
        gc.enable()


def test_an_agent_is_handed_over_once(world, monkeypatch):
    """Its environment is not sent with each of its files: thousands of copies take 100 MB."""
    fill(world, files=8, turns=1)
    sent: list[bytes] = []
    monkeypatch.setattr(ahead, "_start", sent.append)
    files = logs_of(world)
    for file in files:
        file.agent.environ = {"HOME": "~", "KETTLE": "on"}
    known = [(file, Tracked(file.path, file.agent.agent, file.kind)) for file in files]
    ahead.ReadAhead(known, NO_INDEX, settle=True)
    _, _, agents, jobs = marshal.loads(sent[0])
    assert (len(agents), len(jobs)) == (1, 8)
    assert "KETTLE" in repr(agents)
    assert "KETTLE" not in repr(jobs)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def is_running(pid):
    return os.path.exists(f"/proc/{pid}")


def finished(world):
    """Whether all files were read to their ends."""
    try:
        return world.sql("SELECT count(*) FROM sources WHERE mtime_ns > 0") == [(12,)]
    except SessError:  # the index is being made
        return False
