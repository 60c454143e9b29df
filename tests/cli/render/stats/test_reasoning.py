"""Reasoning tokens: part of the output, and shown on their own."""

from __future__ import annotations

import json

import pytest
from tests.gemini_home import GeminiWorld, answer, encoded, header, prompt

TOKENS = {"input": 900, "cached": 200, "output": 30, "thoughts": 15, "tool": 0, "total": 945}


@pytest.fixture
def thoughtful(tmp_path):
    world = GeminiWorld(tmp_path)
    world.log().write_bytes(
        encoded(header(), prompt(1, "why is it slow?"), answer(2, "The cache.", tokens=TOKENS))
    )
    world.ingest()
    return world


def test_every_output_agrees(thoughtful):
    """`--json`, the rows behind it, SQL and the dashboard have the same counts."""

    def objects(*arguments):
        done = thoughtful.run("sess", *arguments, "--json", "--no-sync", check=0)
        return [json.loads(line) for line in done.stdout.splitlines()]

    (total,) = objects("stats")
    assert (total["output_tokens"], total["reasoning_tokens"]) == (45, 15)
    rows = objects("stats", "--explain", "total")
    assert [row["reasoning_tokens"] for row in rows if row["type"] == "response"] == [15]
    assert objects("sql", "SELECT output_tokens, reasoning_tokens, tokens FROM v_usage") == [
        {"output_tokens": 45, "reasoning_tokens": 15, "tokens": 945}
    ]
    shown = thoughtful.run("sess", "stats", "--no-sync", check=0).stdout
    assert "out 45 (15 reasoning)" in shown


def test_nothing_is_said_where_nothing_was_recorded(world):
    """An agent that does not count reasoning has no zero in its numbers."""
    log = world.transcript()
    log.append(log.prompt("hello"), log.answer("hi"))
    world.ingest()
    assert "reasoning" not in world.run("sess", "stats", "--no-sync", check=0).stdout
