"""One rule says who is listed in the list, the finder, the numbers and a site."""

from __future__ import annotations

import json
import os
import re

import pytest
from tests.cli.continuing.continuing_worlds import recorder
from tests.cli.finder.screen import drive

TALK = "11111111-1111-4111-8111-111111111111"
WARM = "22222222-2222-4222-8222-222222222222"
ORPHAN = "agent-0rfan123"


@pytest.fixture
def mixed(world):
    """A conversation with a subagent, a subagent whose session is missing, and a warm-up."""
    talk, below = (
        world.transcript(TALK),
        world.transcript("agent-be10w123", f"-code-demo/{TALK}/subagents"),
    )
    talk.append(talk.prompt("do it"), talk.answer("done"))
    below.append(
        below.prompt("look", isSidechain=True, sessionId=TALK),
        below.answer("found", isSidechain=True, sessionId=TALK),
    )
    gone = "99999999-9999-4999-8999-999999999999"
    orphan = world.transcript(ORPHAN, f"-code-demo/{gone}/subagents")
    orphan.append(
        orphan.prompt("seek", isSidechain=True, sessionId=gone),
        orphan.answer("lost", isSidechain=True, sessionId=gone),
    )
    warm = world.transcript(WARM)
    warm.append(warm.prompt("Warmup"), warm.answer("ready"))
    world.ingest()
    return world


def facts(page):
    return dict(re.findall(r"<dt>([\w ]+)</dt><dd>([^<]*)</dd>", page))


def test_one_rule_says_who_is_listed(mixed):
    listed = mixed.run("sess", "list", "--no-sync", "--json", check=0).stdout.splitlines()
    assert [json.loads(line)["session"] for line in listed] == [TALK]
    total = json.loads(mixed.run("sess", "stats", "--no-sync", "--json", check=0).stdout)
    assert (total["sessions"], total["other_sessions"]) == (1, 2)
    said = mixed.run("sess", "stats", "--no-sync", check=0).stdout
    assert "1 session and 2 unlisted" in said


def test_the_finder_counts_what_it_leaves_out(mixed):
    async def script(screen):
        assert screen.summary() == "newest sessions · 2 unlisted: `sess list --all`"
        assert len(screen.list()) == 1

    drive(mixed, script)


def test_a_site_leaves_nothing_out_and_its_totals_are_those_of_stats(mixed):
    done = mixed.run("sess", "export", "site", "-o", mixed.root / "site", "--no-sync", check=0)
    assert "folded away on it: 2 unlisted" in done.stderr
    total = json.loads(mixed.run("sess", "stats", "--no-sync", "--json", check=0).stdout)
    index = (mixed.root / "site/index.html").read_text("utf-8")
    shown = facts(index)
    assert shown["Sessions"] == "1"
    assert shown["Prompts"] == str(total["prompts"])
    tokens = sum(
        total[f"{kind}_tokens"] for kind in ("input", "output", "cache_write", "cache_read")
    )
    assert shown["Tokens"] == str(tokens)
    above, folded = index.split('<details class="others">')
    folded = folded.split("</details>")[0]
    assert (above.count("<li data-file"), folded.count("<li data-file")) == (1, 2)
    assert "2 unlisted" in folded
    assert len([*(mixed.root / "site/sessions").iterdir()]) == 3


def test_documents_of_several_say_what_they_leave_out_and_data_leaves_nothing_out(mixed):
    asked = ("--since", "2020-01-01", "-o", "-", "--no-sync")
    page = mixed.run("sess", "export", "md", *asked, check=0)
    assert "left out 2 unlisted" in page.stderr
    data = json.loads(mixed.run("sess", "export", "json", *asked, check=0).stdout)
    assert {one["session"]["session"] for one in data["sessions"]} == {TALK, WARM, ORPHAN}


def test_one_id_of_two_agents_names_both(world):
    """Nothing is taken silently; what is named is accepted."""
    t = world.transcript()
    t.append(t.prompt("of one agent"), t.answer("aye"))
    with recorder(world, t.session) as record:
        record.user("of another")
        record.assistant("nay")
    os.utime(t.path, (1_700_000_000, 1_700_000_000))
    world.run("sessiond", "sync", check=0)
    names = [f"claude/{t.session}", f"jcode/{t.session}"]
    for before, after in (("show", ()), ("records", ()), ("cut", ("1",)), ("state", ())):
        done = world.run("sess", before, t.session, *after, check=2)
        assert done.stderr.startswith(f'sess: "{t.session}" matches 2 sessions:\n')
        assert all(f"\n  {name}  " in done.stderr for name in names)
    assert "matches 2" in world.run("sess", "export", "md", t.session, check=2).stderr
    assert "aye" in world.run("sess", "show", names[0], check=0).stdout
    assert "nay" in world.run("sess", "show", names[1], check=0).stdout
    world.run("sess", "cut", names[0], "2", "--dry-run", check=0)
