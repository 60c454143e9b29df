"""`sess demo` as a program."""

from __future__ import annotations

import pytest

from sess_cli.commands.demo import install_sample
from sess_schema import times

pytestmark = pytest.mark.slow


def test_it_works_without_any_transcript(world):
    """List, search and show run on the sample, and nothing is left behind."""
    before = sorted(world.root.rglob("*"))
    done = world.run("sess", "demo", check=0)
    assert done.stderr == ""
    commands = [line for line in done.stdout.splitlines() if line.startswith("$ ")]
    assert [command.partition("  #")[0] for command in commands] == [
        "$ sess list",
        "$ sess search kitchen clock",
        "$ sess search --error 'test*'",
        "$ sess show 7ea9",
    ]
    assert "● Bash  pytest -x tests/test_brew.py" in done.stdout
    assert "→ agent-a5p0u7 (Explore), 3 events" in done.stdout
    assert sorted(world.root.rglob("*")) == before


def test_the_sample_is_sound(world, sess):
    """Every line is understood; there is a failure, a refusal and a linked subagent."""
    install_sample(world.projects)
    world.ingest()
    assert world.sql("SELECT count(*) FROM warnings") == [(0,)]
    assert world.sql("SELECT status, count(*) FROM events WHERE status IS NOT NULL GROUP BY 1") == [
        ("denied", 1),
        ("error", 1),
        ("ok", 5),
    ]
    assert world.sql("SELECT call_id FROM sessions WHERE kind = 'subagent'") == [("toolu_brew_2",)]
    newest = sess.json("list")[0]
    assert 0 <= times.now_ms() - times.since(newest["ended"]) < times.DAY
