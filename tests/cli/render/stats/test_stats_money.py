"""Money as people read it: losses, next to nothing, and what nobody knows."""

from __future__ import annotations

import pytest
from tests.golden_home import GoldenWorld

from sess_cli.render.tallies import money


@pytest.mark.parametrize(
    ("nano", "shown"),
    [
        (0, "$0"), (1, "~$0"), (-450, "~$0"), (50_000, "$0.0001"), (-50_000, "-$0.0001"),
        (9_990_000, "$0.0100"), (10_000_000, "$0.01"), (-1_250_000_000, "-$1.25"),
        (1_234_567_890_000_000, "$1,234,567.89"),
    ],
)  # fmt: skip
def test_money(nano, shown):
    assert money(nano) == shown


def test_the_cache_may_cost_more_than_it_saves(world):
    """Written and never read: dearer by a quarter. What an unknown model saves is not nothing."""
    t = world.transcript()
    for number, model in enumerate(("claude-opus-4-5", "nobody-knows-1")):
        record = t.answer("done", message_id=f"msg_{number}")
        record["message"]["model"] = model
        record["message"]["usage"]["cache_creation_input_tokens"] = 1_000_000
        t.append(t.prompt(f"go {number}"), record)
    world.ingest()
    lines = world.run("sess", "stats", "cache", "--no-sync", check=0).stdout.splitlines()
    saved = {line.split()[0]: line.split()[-2] for line in lines if line and "-" in line.split()[0]}
    assert saved == {"claude-opus-4-5": "-$1.25", "nobody-knows-1": "unknown"}


def test_what_nobody_was_billed_is_said(tmp_path):
    """An agent that is paid by subscription is named beside the cost of its tokens."""
    world = GoldenWorld(tmp_path, "cursor")
    world.lay_all()
    world.run("sessiond", "sync", check=0)
    shown = world.run("sess", "stats", "--no-sync", check=0).stdout
    assert "Cursor: paid by subscription" in shown
    (tmp_path / "other").mkdir()
    other = GoldenWorld(tmp_path / "other", "claude")
    other.lay_all()
    other.run("sessiond", "sync", check=0)
    assert "subscription" not in other.run("sess", "stats", "--no-sync", check=0).stdout
