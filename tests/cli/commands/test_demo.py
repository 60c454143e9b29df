"""`sess demo` as a program."""

from __future__ import annotations

import re
import shlex
from importlib import resources
from pathlib import Path

import pytest
from tests.must import must

from sess_cli.commands import demo
from sess_cli.commands.demo import install_sample
from sess_common import times

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


def examples():
    """The commands of the README whose output it shows."""
    text = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)]
    lines = [part.strip("\n").partition("\n") for part in parts]
    return {command: shown for command, _, shown in lines if shown and command[:5] == "sess "}


@pytest.fixture
def teapot(world, sess):
    """The sample as it is eight and a half hours after its last record."""
    texts = demo._texts(resources.files("sess_cli") / "sample", ())
    last = max(times.since(stamp) for _, text in texts for stamp in demo._TIMESTAMP.findall(text))
    shift = times.now_ms() - 17 * times.HOUR // 2 - last
    for parts, text in texts:
        path = world.projects.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        moved = demo._TIMESTAMP.sub(lambda m: must(times.iso(times.since(m[0]) + shift)), text)
        path.write_text(moved, "utf-8")
    world.ingest()
    return sess


def test_the_readme_shows_what_is_printed(teapot):
    """On the sample, in 100 columns."""
    assert len(examples()) == 6
    for command, shown in examples().items():
        text, _ = teapot.on_terminal(*shlex.split(command)[1:], "--no-sync", width=100)
        assert text.rstrip("\n") == shown, command
