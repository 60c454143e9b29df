"""The power fails at any moment: the index is whole, has all that was committed, and goes on."""

from __future__ import annotations

import shutil

import apsw
import pytest
from tests.at_length import amount, count, seeds, spread
from tests.faults.history import close, facts, history
from tests.faults.power import Power

from sess_common.errors import SessError
from sess_schema.connection import open_writer
from sessiond.ingest import Ingest
from sessiond.writing.transaction import Store


def live(world, power):
    """The whole history; after a cut the machine starts again. Returns whether there was one."""
    world.state.mkdir(mode=0o700)
    index = world.state / "index.db"
    cuts = 0
    committed: dict[str, int] = {}
    for _ in history(world):
        done = False
        while not done:
            db = None
            try:
                db = open_writer(index)
                Ingest(Store(db)).reconcile(world.places())
                done = True
            except (SessError, apsw.IOError):
                cuts += 1
                assert cuts == 1
            finally:
                close(db)
            if power.off:
                power.restore(world.state)
                if committed:
                    check(world, committed)
        committed = offsets(world)
    return cuts


def offsets(world):
    return dict(world.sql("SELECT path, offset FROM sources"))


def check(world, committed):
    """Whole, and nothing that a finished sync had read is forgotten."""
    world.check()
    now = offsets(world)
    same = {path for path in committed if now.get(path, -1) >= committed[path]}
    generations = dict(world.sql("SELECT path, generation FROM sources"))
    assert {path for path in committed if generations.get(path) == 1} <= same
    ((lines, records),) = world.sql(
        "SELECT (SELECT sum(lines - blank_lines) FROM sources WHERE state = 'live'),"
        " (SELECT count(DISTINCT source_id || ' ' || line) FROM records JOIN sources s"
        " ON s.id = source_id WHERE retired = 0 AND s.state = 'live')"
    )
    assert lines == records


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_a_power_cut_loses_nothing_that_was_committed(world, tmp_path, seed):
    """Cut at call N, with unsynced sectors there or not: what a sync had read is read, and the
    end is the same as without."""
    with Power() as power:
        assert live(world, power) == 0
    total = power.calls
    undisturbed = facts(world)
    cuts = 0
    for call in spread(total, amount(12, 60)):
        other = type(world)(tmp_path / "cut")
        with Power(call, seed) as power:
            cuts += live(other, power)
        count("cuts")
        told = f"seed {seed}, cut at call {call} of {total}"
        assert facts(other) == undisturbed, told
        other.check()
        shutil.rmtree(other.root)
    assert cuts > 1
