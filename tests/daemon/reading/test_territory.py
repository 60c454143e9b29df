"""Whose a file is: by place, and by content where places overlap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.must import must

from sessiond.config import Config
from sessiond.reading.survey import survey
from sessiond.reading.territory import Place, Territory
from sessiond.sourcekit.base import Source
from sessiond.sources import all_sources


class Agent(Source):
    """Reads every `.jsonl`; its own begin with its name."""

    def __init__(self, agent: str, *roots: Path, avoids: str = "") -> None:
        super().__init__(environ={"HOME": "/nowhere"})
        self.agent = agent
        self._roots = [str(root) for root in roots]
        self._avoids = avoids

    def places(self) -> list[str]:
        return self._roots

    def classify(self, path: str) -> str | None:
        return "transcript" if path.endswith(".jsonl") else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - content alone decides
        return head.startswith(self.agent.encode())

    def enters(self, directory: str) -> bool:
        return Path(directory).name != self._avoids


def owners(*agents: Agent) -> dict[str, str]:
    """File name by agent, as a walk of all roots finds them."""
    territory = Territory(agents)
    seen = survey(territory.places, territory.roots)
    return {Path(file.path).name: file.agent.agent for file in seen.files}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_innermost_root_owns_a_file(tmp_path):
    """A root inside another agent's root is walked for its own agent only."""
    write(tmp_path / "a.jsonl", "")
    write(tmp_path / "deep" / "er" / "b.jsonl", "")
    outer, inner = Agent("one", tmp_path), Agent("two", tmp_path / "deep")
    assert owners(outer, inner) == {"a.jsonl": "one", "b.jsonl": "two"}
    assert owners(inner, outer) == {"a.jsonl": "one", "b.jsonl": "two"}


def test_a_root_below_a_folder_that_others_avoid_is_walked(tmp_path):
    """What one agent does not enter may still be another's root."""
    write(tmp_path / "cache" / "two" / "b.jsonl", "")
    outer = Agent("one", tmp_path, avoids="cache")
    assert owners(outer, Agent("two", tmp_path / "cache" / "two")) == {"b.jsonl": "two"}


def test_content_decides_in_a_shared_root(tmp_path):
    """Two agents with one root: each gets its own files, whoever is asked first."""
    write(tmp_path / "a.jsonl", "one says")
    write(tmp_path / "b.jsonl", "two says")
    one, two = Agent("one", tmp_path), Agent("two", tmp_path)
    assert owners(one, two) == owners(two, one) == {"a.jsonl": "one", "b.jsonl": "two"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("onetwo", "matches several agents: one, onetwo"),
        ("neither", "is not a known transcript format"),
    ],
)
def test_what_cannot_be_decided_is_skipped_and_named(tmp_path, text, reason):
    """No order of asking breaks a tie."""
    path = write(tmp_path / "a.jsonl", text)
    agents = Agent("one", tmp_path), Agent("onetwo", tmp_path)
    for sources in (agents, agents[::-1]):
        territory = Territory(sources)
        assert survey(territory.places).skipped == [(str(path), reason)]


def test_a_hint_is_for_the_agents_that_reach_it(tmp_path):
    """The daemon asks about a single path what the walk would have found."""
    territory = Territory([Agent("one", tmp_path, avoids="cache"), Agent("two", tmp_path / "two")])
    assert territory.place_of(str(tmp_path / "cache" / "a.jsonl")) is None
    assert territory.place_of("/elsewhere/a.jsonl") is None
    around = must(territory.place_of(str(tmp_path / "two" / "a.jsonl")))
    assert [source.agent for source in around.sources] == ["two"]


def test_real_agents_share_any_folder(tmp_path):
    """Files of all agents in one folder, named on the command line, find their owners."""
    folder = tmp_path / "backup"
    claude = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": "hi"}}
    cursor = {"composerId": "c", "bubble": {"type": 1, "text": "hi"}}
    error = {"type": "error", "error": "boom"}  # says nothing: its folder does
    write(folder / "a.jsonl", json.dumps(claude) + "\n")
    write(folder / "b.jsonl", json.dumps(cursor) + "\n")
    write(folder / "agent-transcripts" / "c.jsonl", json.dumps(error) + "\n")
    seen = survey([Place(str(folder), tuple(all_sources(Config())))])
    found = {Path(file.path).name: file.agent.agent for file in seen.files}
    assert found == {"a.jsonl": "claude", "b.jsonl": "cursor", "c.jsonl": "cursor"}
    assert seen.skipped == []


def test_no_golden_file_is_claimed_by_two_agents():
    """By content alone, each agent knows its own files and no others."""
    golden = Path(__file__).parents[2] / "golden"
    every = all_sources(Config())
    for file in sorted(golden.rglob("*.json*")):
        if file.name.startswith("expected"):
            continue
        head = file.read_bytes()[: 64 << 10]
        claiming = {source.agent for source in every if source.claims(str(file), head)}
        assert claiming <= {file.relative_to(golden).parts[0]}, file
