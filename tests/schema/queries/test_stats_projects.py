"""Statistics by project and by session, with subagents whose parents are missing."""

from __future__ import annotations

from contextlib import closing

import pytest

from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries import sessions
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import failures

MAIN = "11111111-1111-4111-8111-111111111111"
LOST = "33333333-3333-4333-8333-333333333333"
PROJECTS = ("/code/demo", "/code/other", "-code-unknown")


def subagent(world, name, parent, folder, **more):
    t = world.transcript(f"agent-{name}", f"{folder}/{parent}/subagents")
    more |= {"isSidechain": True, "sessionId": parent}
    records = [
        t.prompt("look", **more),
        t.call(f"c-{name}") | more,
        t.result(f"c-{name}", "no", is_error=True, **more),
    ]
    if "cwd" in more and more["cwd"] is None:
        records = [{key: one[key] for key in one if key != "cwd"} for one in records]
    return t.append(*records)


@pytest.fixture
def index(world):
    """A session with a subagent that works elsewhere, and three subagents of nobody."""
    t = world.transcript(MAIN)
    t.append(t.prompt("go"), t.answer("gone"))
    subagent(world, "a1known", MAIN, "-code-demo", cwd="/worktrees/demo-1")
    subagent(world, "b1lost", LOST, "-code-other", cwd="/code/other")
    subagent(world, "b2lost", LOST, "-code-other", cwd="/code/other")
    subagent(world, "b3lost", "44444444-4444-4444-8444-444444444444", "-code-unknown", cwd=None)
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        yield db


def counts(tally):
    return tally.requests, tally.prompts, tally.tool_calls, tally.tool_errors


def test_every_subagent_counts_in_a_project(index):
    """That of the session that started it; without one, its own."""
    groups = Stats().groups(index, "project")
    assert {name: counts(tally) for name, tally in groups.items()} == {
        "/code/demo": (2, 1, 1, 1),
        "/code/other": (2, 0, 2, 2),
        "-code-unknown": (1, 0, 1, 1),
    }


@pytest.mark.parametrize("project", PROJECTS)
def test_a_filter_selects_what_the_group_has(index, project):
    """`--project X` and `--by project` agree."""
    group = Stats().groups(index, "project")[project]
    total = Stats(projects=[project]).total(index)
    assert (total, group.tokens) == (group, total.tokens)


def test_a_folder_of_a_subagent_is_no_project_of_its_own(index):
    """What works in a worktree counts where it was started."""
    assert counts(Stats(projects=["/worktrees/demo-1"]).total(index)) == (0, 0, 0, 0)


def test_failures_are_grouped_alike(index, tmp_path):
    """`sess stats errors` has the same projects."""
    found = failures.read(index, Stats(), tmp_path).calls
    assert sorted(one.project for one in found) == [
        "-code-unknown", "/code/demo", "/code/other", "/code/other",
    ]  # fmt: skip


def test_groups_are_sessions_that_can_be_shown(index):
    """A parent that was never read is no group, and counts as no session."""
    groups = Stats().groups(index, "session")
    assert sorted(groups) == [MAIN, "agent-b1lost", "agent-b2lost", "agent-b3lost"]
    for name in groups:
        assert sessions.resolve(index, name).session == name
    with pytest.raises(SessError, match="no such session"):
        sessions.resolve(index, LOST)
    total = Stats().total(index)
    assert (len(total.sessions), len(total.others)) == (1, 3)  # the three have lost their session
