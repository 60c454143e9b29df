"""Crush: answers that end after their calls, session rows that change, and new projects."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.golden_home import GoldenWorld, database

SESSION = "5e551000-0000-4000-8000-000000000001"


@pytest.fixture
def world(tmp_path):
    made = GoldenWorld(tmp_path, "crush")
    made.lay_all()
    made.ingest()
    return made


def write(world, *statements, project="yard"):
    with closing(database(world.root / project / ".crush" / "crush.db")) as db, db:
        for statement, *values in statements:
            db.execute(statement, values)


def events(world):
    return world.sql("SELECT id, type, status FROM events WHERE retired = 0 ORDER BY id")


def test_an_answer_that_ends_after_its_calls_keeps_its_events(world):
    """Crush notes the end of an answer when the results of its calls are already there."""
    before = events(world)
    ended = "UPDATE messages SET parts = replace(parts, 'tool_use', 'max_tokens'), updated_at ="
    write(
        world,
        (f"{ended} updated_at + 60 WHERE role = 'assistant'",),
        ("UPDATE sessions SET updated_at = updated_at + 60",),
    )
    world.ingest()
    assert events(world) == before
    assert world.sql("SELECT count(*) FROM records WHERE retired > 0") == [(0,)]
    world.check()


def test_the_last_state_of_a_session_counts(world):
    """The tokens are those of the last response, so they may fall; the cost only grows."""
    spent = "prompt_tokens = 1000, completion_tokens = 3, cost = 0.062"
    write(
        world,
        (f"UPDATE sessions SET {spent}, updated_at = updated_at + 60 WHERE id = ?", SESSION),
    )
    world.ingest()
    assert world.sql(
        "SELECT u.input_tokens, u.output_tokens, u.cost_usd FROM usage u JOIN sessions s"
        " ON s.id = u.session_id WHERE s.native_id = ?",
        SESSION,
    ) == [(1000, 3, 0.06)]
    world.check()


def test_a_project_is_read_as_soon_as_it_is_registered(world):
    """The registry is read again when it changed; a folder that is in none is not looked for."""
    yard = (world.root / "yard" / ".crush" / "crush.db").read_bytes()
    (world.root / "shed" / "data").mkdir(parents=True)
    (world.root / "shed" / "data" / "crush.db").write_bytes(yard)
    with closing(database(world.root / "shed" / "data" / "crush.db")) as db:
        db.execute("UPDATE sessions SET id = 'shed-' || id")
        db.execute("UPDATE messages SET id = 'shed-' || id, session_id = 'shed-' || session_id")
    assert world.ingest().records == 0
    registry = world.root / ".local/share/crush/projects.json"
    listed = json.loads(registry.read_text())
    listed["projects"].append(
        {"path": str(world.root / "shed"), "data_dir": str(world.root / "shed" / "data")}
    )
    registry.write_text(json.dumps(listed))
    assert world.ingest().records > 0
    assert world.sql("SELECT project FROM sessions WHERE native_id = ?", f"shed-{SESSION}") == [
        (str(world.root / "shed"),)
    ]
