"""Warp: what it deletes to save space stays in the index, and what it changes is read again."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.golden_home import GoldenWorld, database

LOAF = "3a990000-0000-4000-8000-000000000001"
ROLL = "3a990000-0000-4000-8000-000000000003"


@pytest.fixture
def world(tmp_path):
    made = GoldenWorld(tmp_path, "warp")
    made.lay_all()
    made.ingest()
    return made


def run(world, *statements):
    with closing(database(world.root / ".local/state/warp-terminal/warp.sqlite")) as db:
        for statement in statements:
            db.execute(statement)
    return world.ingest().records


def used(world):
    return world.sql(
        "SELECT u.model, u.input_tokens, u.output_tokens, u.cost_usd FROM usage u"
        " JOIN sessions s ON s.id = u.session_id WHERE s.native_id = ? ORDER BY 1",
        LOAF,
    )


def test_deleted_rows_stay_in_the_index(world):
    """Warp keeps the newest prompts and conversations only."""
    before = world.shown(LOAF), used(world)
    assert run(world, f"DELETE FROM agent_conversations WHERE conversation_id = '{LOAF}'") == 0
    assert (world.shown(LOAF), used(world)) == before
    run(world, f"DELETE FROM ai_queries WHERE conversation_id = '{LOAF}' AND id < 3")
    run(world, f"DELETE FROM ai_queries WHERE conversation_id = '{LOAF}'")
    assert (world.shown(LOAF), used(world)) == before
    world.check()


def test_a_prompt_is_read_again_when_its_answer_ends(world):
    """Its row is changed in place."""
    update = f"UPDATE ai_queries SET output_status = '\"Failed\"' WHERE conversation_id = '{ROLL}'"
    assert run(world, update) == 1
    assert [shown[:2] for shown in world.shown(ROLL)] == [
        ("user", "Bake a roll instead"),
        ("system", "failed"),
    ]
    world.check()


def test_sums_replace_earlier_ones(world):
    """Also when they are no longer of types of tokens but of models."""
    assert used(world) == [("claude-sonnet-4-5", 5000, 700, 0.08), ("gpt-5-mini", 0, 0, None)]
    sums = [("claude-sonnet-4-5", 900), ("gpt-5-mini", 100)]
    usage = {
        "token_usage": [{"model_id": name, "byok_tokens": count} for name, count in sums],
        "total_provider_cost_in_cents": 2.0,
    }
    data = json.dumps({"conversation_usage_metadata": usage})
    run(
        world,
        f"UPDATE agent_conversations SET last_modified_at = '2026-08-03', conversation_data ="
        f" '{data}' WHERE conversation_id = '{LOAF}'",
    )
    assert used(world) == [("claude-sonnet-4-5", 900, 0, 0.018), ("gpt-5-mini", 100, 0, 0.002)]
    world.check()
