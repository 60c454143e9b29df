"""kill -9 at random moments while a writer appends: the index is as after an undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time

import pytest
from tests.at_length import amount, count, seeds
from tests.daemon.ingest.test_masking import KEY, everything, ingest
from tests.daemon.writing.test_order import conversation, written
from tests.waiting import let_it_write

from sessiond.ingest import passes
from sessiond.sourcekit.masking import Masker


def grow(transcripts, stop, seed, secret=""):
    """Append whole conversations, each line cut at random bytes, flushed piece by piece."""
    rng = random.Random(seed)
    number = 0
    while not stop.is_set():
        t = rng.choice(transcripts)
        number += 1
        call = f"toolu_{t.session[:4]}_{number}"
        lines = [
            t.prompt(f"question {number}"),
            t.call(call, command=f"make step{number}"),
            t.result(call, f"output {number} " * rng.randint(1, 300), is_error=number % 7 == 0),
            t.prompt(f"use {secret} for it"),
            t.answer(f"answer {number}"),
        ]
        for line in map(t.encode, lines):
            cuts = sorted(rng.sample(range(1, len(line)), 2))
            for piece in (line[: cuts[0]], line[cuts[0] : cuts[1]], line[cuts[1] :]):
                with t.path.open("ab") as file:
                    file.write(piece)
                time.sleep(rng.random() * 0.004)


def kill_often(world, kills, seed, secret=""):
    """Start daemons and kill each after some progress, while transcripts grow."""
    rng = random.Random(seed)
    transcripts = [
        world.transcript(f"{letter * 8}-1111-4111-8111-111111111111") for letter in "abc"
    ]
    stop = threading.Event()
    writer = threading.Thread(target=grow, args=(transcripts, stop, seed, secret))
    writer.start()
    try:
        for _ in range(kills):
            daemon = world.start()
            let_it_write(world, rng.randrange(8))
            daemon.kill()
            count("kills", daemon.wait() == -signal.SIGKILL)
    finally:
        stop.set()
        writer.join()


def assert_as_undisturbed(world, tmp_path, mask=None):
    """The same files read once, in one go, give the same index."""
    world.run("sessiond", "sync", check=0)
    world.check()
    clean = type(world)(tmp_path / "clean")
    shutil.rmtree(clean.projects)
    shutil.copytree(world.projects, clean.projects)
    ingest(clean, mask)
    disturbed, undisturbed = world.dump(), clean.dump()
    for part, rows in undisturbed.items():
        assert disturbed[part] == rows, part
    assert len(disturbed["events"]) > 20


@pytest.mark.parametrize("seed", seeds(1, 8))
def test_killing_the_daemon_changes_nothing(world, tmp_path, seed):
    """After kill -9 again and again: the same events, records, usage and checkpoints as without."""
    kill_often(world, amount(12, 40), seed)
    assert_as_undisturbed(world, tmp_path)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_a_secret_is_masked_whenever_the_daemon_is_killed(world, tmp_path, seed):
    """Even of a line that was half written; the index is as after an undisturbed, masked run."""
    world.state.mkdir(mode=0o700)
    (world.state / "config.toml").write_text("[redact]\nat_ingest = true\n")
    kill_often(world, amount(5, 40), seed, KEY)
    assert KEY[:20].encode() not in everything(world)
    assert_as_undisturbed(world, tmp_path, Masker())
    assert KEY[:20].encode() not in everything(world)


def killed_load(world, monkeypatch, rng):
    """Load what is there, committing each step, and die after some commits; whether it died."""
    told, ready = os.pipe()
    child = os.fork()
    if child == 0:
        commit = passes.Ingest._commit

        def committed(self, *arguments):
            commit(self, *arguments)
            os.write(ready, b".")

        monkeypatch.setattr(passes.Ingest, "_commit", committed)
        monkeypatch.setattr(passes, "FIRST_COMMITS", (0,) * 1000)
        try:
            world.ingest()
        finally:
            os._exit(0)
    os.close(ready)
    for _ in range(rng.randint(0, 4)):
        os.read(told, 1)  # or it has ended
    time.sleep(rng.random() * 0.02)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(told)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("seed", seeds(2, 12))
def test_a_first_load_killed_at_any_point_goes_on_to_the_same_end(
    world, tmp_path, monkeypatch, seed
):
    """Also if it is killed in each file, and if files are read in the opposite order."""
    rng = random.Random(seed)
    for number, (session, lines) in enumerate(sorted(conversation(world, rng).items())):
        transcript = written(world, session)
        transcript.append(*lines, transcript.prompt("long " * rng.choice([1, 300_000])))
        os.utime(transcript.path, (1.7e9 + number, 1.7e9 + number))
    for _ in range(amount(12, 40)):
        count("kills of a first load", killed_load(world, monkeypatch, rng))
    world.run("sessiond", "sync")  # a file over which two died is tried by the next one
    world.run("sessiond", "sync", check=0)
    assert world.sql("SELECT DISTINCT state FROM sources") == [("live",)]
    clean = type(world)(tmp_path / "clean")
    shutil.rmtree(clean.projects)
    shutil.copytree(world.projects, clean.projects)
    for path in clean.projects.rglob("*.jsonl"):
        turned = 3.4e9 - path.stat().st_mtime
        os.utime(path, (turned, turned))
    clean.ingest()
    world.check()
    disturbed, undisturbed = world.dump(), clean.dump()
    for part, rows in undisturbed.items():
        assert disturbed[part] == rows, part
