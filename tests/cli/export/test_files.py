"""Files are complete or absent, and replace nothing but regular files."""

from __future__ import annotations

import os
import resource
import signal
import stat

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def talk(world):
    t = world.transcript()
    t.append(*(line for n in range(200) for line in (t.prompt(f"do {n}"), t.answer("x" * 500))))
    world.ingest()


@pytest.mark.parametrize("kind", ["html", "md", "json", "sqlite", "cast", "tape"])
def test_a_pipe_is_not_replaced(world, talk, tmp_path, kind):
    """As root, `-o /dev/null` would take the device away from everybody."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = world.run("sess", "export", kind, MAIN, "-o", pipe, "--no-sync", check=2)
    assert f'"{pipe}" is not a regular file' in done.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [*tmp_path.glob(".sess-*")] == []


@pytest.mark.parametrize("kind", ["html", "json"])
def test_a_full_disk_is_reported_as_such(world, talk, tmp_path, kind):
    target = tmp_path / "out"

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    asked = ("export", kind, MAIN, "-o", target, "--no-sync")
    done = world.run("sess", *asked, check=2, preexec_fn=limit)
    assert f'no space left for "{target}"' in done.stderr
    assert [*tmp_path.glob("out*"), *tmp_path.glob(".sess-*")] == []
