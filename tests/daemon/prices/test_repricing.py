"""New prices reach old responses: at the next start, and when told to."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.conftest import opened
from tests.waiting import LIMIT

from sessiond.config import Config
from sessiond.service import startup

pytestmark = pytest.mark.slow

PRICED = '[prices."claude-opus-4-5"]\ninput = 1000.0\noutput = 0.0\n'


def cost(world):
    return world.sql("SELECT sum(cost_nano) FROM usage")[0][0]


def test_a_changed_configuration_prices_everything_anew(world):
    """3 tokens at 1,000 dollars per million are 3,000,000 nano-dollars, recorded long before."""
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("done"))
    world.run("sessiond", "sync", check=0)
    before = cost(world)
    assert before > 0
    (world.state / "config.toml").write_text(PRICED)
    world.run("sessiond", "sync", check=0)
    assert cost(world) == 3_000_000
    (world.state / "config.toml").unlink()
    assert world.run("sessiond", "reprice", check=0).stdout == "1 response repriced\n"
    assert cost(world) == before


def test_an_empty_index_is_not_repriced(world):
    """There is nothing to say before the first transcript is read."""
    with closing(opened(world.root / "index.db")) as db:
        said: list[str] = []
        startup.reprice_if_due(db, Config(), said.append)
        assert said == []
        startup.reprice_if_due(db, Config(prices={"x": {}}), said.append)
        assert said == []
        assert db.execute("SELECT value FROM facts WHERE name = 'priced_by'").get


def test_a_price_that_is_none_is_one_line(world):
    """The section and what is wrong with it."""
    world.state.mkdir(mode=0o700, exist_ok=True)
    (world.state / "config.toml").write_text('[prices."x"]\ninput = "much"\n')
    done = world.run("sessiond", "sync", check=2)
    assert done.stderr.startswith("sessiond: configuration ")
    assert "Traceback" not in done.stderr


def test_the_daemon_keeps_the_index_to_itself(world):
    """Only one writer: pricing waits until it is gone."""
    process = world.start()
    try:
        while not (world.state / "status.json").exists():
            assert process.poll() is None
        done = world.run("sessiond", "reprice", check=75)
        assert "a daemon is already running" in done.stderr
    finally:
        process.terminate()
        process.wait(LIMIT)
