"""`[exclude]` in config.toml: what it names is not read, and what is not in it is."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from tests.conftest import opened
from tests.golden_home import GoldenWorld

from sess_common.errors import SessError
from sessiond import config
from sessiond.config import Exclude, folder_rules
from sessiond.ingest import Ingest
from sessiond.sources import all_sources
from sessiond.writing.transaction import Store


def ingest(world, **rules):
    world.state.mkdir(mode=0o700, exist_ok=True)
    folders: dict[str, Any] = {name: folder_rules(listed) for name, listed in rules.items()}
    exclude = Exclude(**folders)
    with closing(opened(world.state / "index.db")) as db:
        return Ingest(Store(db), exclude=exclude).reconcile(world.places())


def sessions(world):
    return {name for (name,) in world.sql("SELECT native_id FROM sessions WHERE records > 0")}


@pytest.mark.parametrize(
    ("rule", "project", "covered"),
    [
        ("/code/secret", "/code/secret", True),
        ("/code/secret/", "/code/secret/deep/er", True),
        ("/code/secret", "/code/secret-not", False),
        ("/code/*/secret", "/code/ada/secret/deep", True),
        ("C:\\code", "C:\\code\\deep", True),
        ("ssh://box/srv", "ssh://box/srv/cup", True),
        ("/", "/code", False),
    ],
)
def test_what_a_rule_covers(rule, project, covered):
    """A folder with all below it, never another one that starts alike."""
    assert Exclude(projects=folder_rules([rule])).has_project(project) is covered


OTHERS = "SELECT native_id FROM sessions WHERE records > 0 AND project IS NOT ?"


@pytest.mark.parametrize(
    ("agent", "project", "left"),
    [
        ("claude", "{HOME}/teapot", {"c1a0de00-0000-4000-8000-00000000000c",
                                     "c1a0de00-0000-4000-8000-00000000000d"}),
        ("cursor", "{HOME}/saucer", None),
        ("jehuang-jcode", "{HOME}/ladle", set()),
    ],
)  # fmt: skip
def test_an_excluded_project_leaves_no_trace_and_can_return(tmp_path, agent, project, left):
    """Of logs, documents and databases; without the rule, all is read as if it never was."""
    whole = GoldenWorld(tmp_path, agent, "whole")
    whole.lay_all()
    whole.ingest()
    world = GoldenWorld(tmp_path, agent)
    world.lay_all()
    rule = project.replace("{HOME}", str(world.root))
    if left is None:  # all of other projects
        left = {name for (name,) in whole.sql(OTHERS, rule)}
    for _ in range(2):
        ingest(world, projects=[rule])
        assert sessions(world) == left
        assert world.sql("SELECT count(*) FROM events e JOIN sessions s ON s.id = e.session_id"
                         " WHERE s.project = ?", rule) == [(0,)]  # fmt: skip
    ingest(world)
    found, expected = world.dump(), whole.dump()
    assert {name: found[name] for name in found if name != "sources"} == {
        name: expected[name] for name in expected if name != "sources"
    }


def test_nothing_of_an_excluded_project_is_archived(tmp_path):
    """Neither its bytes nor its words."""
    world = GoldenWorld(tmp_path, "claude")
    world.lay_all()
    ingest(world, projects=[str(world.root / "teapot")])
    assert world.found("whistle") == []
    archived = world.sql("SELECT s.path FROM chunks c JOIN sources s ON s.id = c.source_id")
    assert not any("teapot" in path for (path,) in archived)
    assert {state for (state,) in world.sql("SELECT state FROM sources")} == {"live", "excluded"}


def test_what_was_read_before_stays_and_does_not_grow(world):
    """Only `sess forget` deletes."""
    log = world.transcript()
    log.append(log.prompt("before"))
    ingest(world)
    log.append(log.prompt("after"))
    ingest(world, projects=["/code/demo"])
    assert [text for _, text, _ in world.shown(log.session)] == ["before"]
    ingest(world)
    assert [text for _, text, _ in world.shown(log.session)] == ["before", "after"]


def test_excluded_paths_and_agents_are_not_looked_at(tmp_path):
    """A path covers what is below; an agent is not even asked where its files are."""
    world = GoldenWorld(tmp_path, "claude")
    world.lay_all()
    ingest(world, paths=[str(world.root / ".claude" / "projects" / "-home-*")])
    assert sessions(world) == {"c1a0de00-0000-4000-8000-00000000000c",
                               "c1a0de00-0000-4000-8000-00000000000d"}  # fmt: skip
    file = tmp_path / "config.toml"
    file.write_text('[exclude]\nagents = ["cursor", "claude"]\nprojects = ["~/x"]\n')
    settings = config.load(file)
    agents = {source.agent for source in all_sources(settings)}
    assert "gemini" in agents
    assert agents.isdisjoint({"cursor", "claude"})
    assert settings.exclude.projects[0].endswith("/x")


@pytest.mark.parametrize("text", ["exclude = 1", "[exclude]\nsessions = []", "[exclude]\nagents=1"])
def test_a_wrong_section_is_named(tmp_path, text):
    """With an example of how it must look."""
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SessError, match="exclude"):
        config.load(file)
