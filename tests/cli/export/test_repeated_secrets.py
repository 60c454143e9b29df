"""A secret that is masked once is masked everywhere in what is exported together."""

from __future__ import annotations

import base64

import pytest
from tests.cli.export.test_no_leaks import EXPORTS, MAIN, _told

SECRET = "qR7!vT2#xZ9wLm"
CODED = base64.b64encode(SECRET.encode()).decode()
FROM_AGENT = "Zx81-kLmQ.v77pT"  # in the subagent only


@pytest.fixture
def repeating(world):
    """The value is used before and after the name is seen, here and in a subagent."""
    t = world.transcript()
    t.append(
        t.prompt(f"try {SECRET} and {FROM_AGENT}"),
        t.answer(f"I will try {SECRET}"),
        t.call("c1", command=f"./try.sh {SECRET}"),
        t.result("c1", f"connected with {SECRET}\nsent {CODED}"),
        t.call("c2", command="cat .env"),
        t.result("c2", f"DB_PASSWORD={SECRET}"),
        t.call("c3", "Task", prompt=f"dig with {SECRET}"),
        t.call("c4", "Edit", file_path=f"/x/{SECRET}", old_string="a", new_string=f"b {SECRET}"),
        t.result("c4", "ok"),
    )  # fmt: skip
    agent = world.transcript("agent-7")
    agent.path = t.path.with_suffix("") / "subagents" / "agent-7.jsonl"
    agent.path.parent.mkdir(parents=True)
    agent.append(
        agent.prompt(f"dig with {SECRET}", sessionId=MAIN, isSidechain=True),
        agent.answer(f"API_TOKEN={FROM_AGENT}", sessionId=MAIN, isSidechain=True),
    )
    world.ingest()
    return world


@pytest.mark.parametrize("export", [*EXPORTS, ("md", "--tree", "notes")])
def test_in_no_format_a_piece_of_it_is_left(repeating, tmp_path, export):
    target = tmp_path / "out"
    if "--tree" in export:
        repeating.run("sess", "export", "md", "--tree", target, "--no-sync", check=0)
    else:
        repeating.run("sess", "export", *export, "-o", target, "--no-sync", check=0)
    told = _told(target)
    assert "redacted: password" in told
    for piece in (SECRET[:6], SECRET[-6:], CODED[2:10], FROM_AGENT[:6], FROM_AGENT[-6:]):
        assert piece not in told


def test_nor_in_a_brief_for_another_agent(repeating):
    brief = repeating.run("sess", "handoff", MAIN, "--no-sync", check=0).stdout
    assert "redacted: password" in brief
    assert SECRET[:6] not in brief
    assert FROM_AGENT[:6] not in brief


def test_several_sessions_in_one_file_know_the_secrets_of_each_other(world, tmp_path):
    first, second = world.transcript("s1"), world.transcript("s2")
    first.append(first.prompt(f"run it with {SECRET}"), first.answer("ok"))
    second.append(second.prompt(f"DB_PASSWORD={SECRET}"), second.answer("ok"))
    world.ingest()
    for kind in ("html", "md", "json", "sqlite"):
        target = tmp_path / kind
        world.run("sess", "export", kind, "--agent", "claude", "-o", target, "--no-sync", check=0)
        assert SECRET[:6] not in _told(target)


def test_a_page_of_a_site_is_drawn_again_when_another_session_tells_that_it_has_a_secret(
    world, tmp_path
):
    first, second, third = (world.transcript(f"s{n}") for n in range(3))
    first.append(first.prompt(f"run it with {SECRET}"), first.answer("ok"))
    second.append(second.prompt("go"), second.answer("ok"))
    third.append(third.prompt("idle"), third.answer("ok"))
    world.ingest()
    site = ("sess", "export", "site", "-o", tmp_path / "site", "--no-sync")
    assert "3 drawn" in world.run(*site, check=0).stderr
    assert SECRET in _told(tmp_path / "site")  # nothing tells that it is one
    second.append(second.prompt(f"DB_PASSWORD={SECRET}"))
    world.ingest()
    assert "2 drawn, 1 unchanged" in world.run(*site, check=0).stderr
    assert SECRET[:6] not in _told(tmp_path / "site")
    assert "0 drawn, 3 unchanged" in world.run(*site, check=0).stderr
