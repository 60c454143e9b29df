"""Every number of every agent's golden home, replaced by one that fits nowhere: all is read."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace

import apsw
import pytest
from tests.at_length import AT_LENGTH
from tests.golden_home import GoldenWorld, agents, database

NUMBER = re.compile(rb"(?<=[:\[, ])-?\d+(?:\.\d+)?(?=[,}\]\s])")
IN_SQL = re.compile(r"(?<=[(, :])\d{2,}(?=[,)}\s])")
ABSURD = ["1" + "0" * 400, "9223372036854775808", "1e308", "-9223372036854775808", "0.1e-300"]
# Those that read costs by themselves, or JSON by hand; `make faults` tries all.
CAREFUL = ["cline", "cursor", "openhands", "pi", "continue"]


def with_numbers(part, number):
    if part.is_database:
        made = [
            IN_SQL.sub(number, one) if one.lstrip().upper().startswith("INSERT") else one
            for one in part.statements
        ]
        return replace(part, statements=tuple(made))
    return replace(part, data=NUMBER.sub(number.encode(), part.data))


def lay(world, part, number):
    """A row that the agent's own schema refuses stays as it was."""
    changed = with_numbers(part, number)
    if not part.is_database:
        world.lay(changed)
        return
    path = world.file(part)
    with closing(database(path)) as db:
        for absurd, sound in zip(changed.statements, part.statements, strict=True):
            try:
                db.execute(absurd)
            except apsw.Error:
                db.execute(sound)


@pytest.mark.parametrize("number", ABSURD if AT_LENGTH else ABSURD[:1], ids=lambda one: one[:12])
@pytest.mark.parametrize("agent", agents() if AT_LENGTH else CAREFUL)
def test_no_number_is_too_much(tmp_path, agent, number):
    """No reader crashes, and the sums still add up."""
    world = GoldenWorld(tmp_path, agent)
    for part in world.parts:
        lay(world, part, number)
    crashed = [
        (path, why) for path, why in world.ingest().skipped if re.match(r"\w*(Error|Exit)\b", why)
    ]
    assert crashed == []
    assert world.run("sess", "stats").returncode in (0, 1)
    world.check()
