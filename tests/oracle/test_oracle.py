"""The index and an independent reading agree on the golden homes."""

from __future__ import annotations

import pytest
from tests import golden_home
from tests.oracle import claude, codex, cursor

SAID = (
    "SELECT s.native_id, s.prompts, s.tool_calls, (SELECT count(DISTINCT e.id) FROM records t"
    " JOIN events e ON e.record_id = coalesce(t.copy_of, t.id) WHERE t.session_id = s.id"
    " AND t.retired = 0 AND t.superseded = 0 AND e.retired = 0 AND e.type = 'tool_use'"
    " AND e.unjoined IS NULL AND e.status IN ('error', 'denied')),"
    " strftime('%Y-%m-%dT%H:%M:%fZ', s.started_at / 1000.0, 'unixepoch'),"
    " strftime('%Y-%m-%dT%H:%M:%fZ', s.ended_at / 1000.0, 'unixepoch'),"
    " iif(s.title_rank > 1, s.title, NULL)"
    " FROM sessions s WHERE s.kind = 'main' AND s.records > 0"
)
SPENT = (
    "SELECT s.native_id, sum(u.input_tokens), sum(u.cache_write_tokens), sum(u.cache_read_tokens),"
    " sum(u.output_tokens) FROM usage u JOIN sessions s ON s.id = u.session_id"
    " WHERE u.counted AND NOT u.sidechain GROUP BY 1"
)


@pytest.fixture
def home(tmp_path):
    def made(agent):
        world = golden_home.GoldenWorld(tmp_path, agent)
        world.lay_all()
        world.ingest()
        return world

    return made


def differences(world, said, without=()):
    """By session: what the oracle and the index say, where they differ."""
    index = {row[0]: row[1:] for row in world.sql(SAID)}
    spent = {row[0]: row[1:] for row in world.sql(SPENT)}
    found = {}
    for name, one in said.items():
        mine = [one.prompts, one.calls, one.failed, one.start, one.end, one.title]
        theirs = [*index.get(name, ())]
        if not one.shared:  # which of two sessions owns a response is another question
            tokens = one.tokens
            mine += [tokens.input, tokens.cache_write, tokens.cache_read, tokens.output]
            theirs += spent.get(name, (0, 0, 0, 0))
        for place in sorted(without, reverse=True):
            del mine[place], theirs[place]
        if mine != theirs:
            found[name] = mine, theirs
    return found


def test_claude(home):
    """Prompts by people, calls, failures, times, titles and tokens of every session."""
    world = home("claude")
    said = claude.read(world.root / ".claude" / "projects")
    assert len(said) == 1
    assert differences(world, said) == {}


@pytest.mark.parametrize("case", ["conversation", "injected", "notices", "tools"])
def test_claude_cases(world, case):
    """The same over the logs that the parser itself is tested with."""
    name = "11111111-1111-4111-8111-111111111111"
    path = world.projects / "-code" / f"{name}.jsonl"
    path.parent.mkdir()
    path.write_bytes((golden_home.GOLDEN / "claude" / case / "input.jsonl").read_bytes())
    world.ingest()
    assert differences(world, claude.read(world.projects)) == {}


def test_codex(home):
    """The same for threads that people started, without failures and titles."""
    world = home("codex")
    said = codex.read(world.root / ".codex")
    assert len(said) > 2
    assert differences(world, said, without=(2, 5)) == {}


def test_cursor(home):
    """Prompts, calls and failures of the conversations in the global database."""
    world = home("cursor")
    said = cursor.read(world.root / ".config/Cursor/User/globalStorage/state.vscdb")
    index = {row[0]: row[1:4] for row in world.sql(SAID.replace("s.kind = 'main' AND", ""))}
    assert said
    assert {name: (one.prompts, one.calls, one.failed) for name, one in said.items()} == {
        name: index[name] for name in said
    }
