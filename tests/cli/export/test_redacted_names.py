"""Secrets in unexpected places: names, kinds, versions, the ends of titles."""

from __future__ import annotations

import json

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"
PLACES = ("tool", "kind", "version", "mode", "agent", "branch", "record", "list", "id")


def secret(place):
    return f"ghp_{place}{'a1B2' * 9}"[:40]


@pytest.fixture
def planted(world):
    t = world.transcript()
    seen = {"version": f"2-{secret('version')}", "permissionMode": secret("mode")}
    t.append(
        t.prompt("go", **seen),
        t.call("c1", f"mcp__{secret('tool')}", passwords=[secret("list")], password=["hunter2!x"]),
        t.result("c1", "ok"),
        t.call("c2", command="git commit"),
        t.result("c2", f"[fix/{secret('branch')} abc1234] done\n 1 file changed"),
        t.call("c3", "Task", prompt="dig"),
        {**t.record("system", None), "subtype": secret("kind"), "content": "told"},
        {**t.record(f"odd-{secret('record')}", None), "uuid": secret("id")},
    )
    agent = world.transcript("agent-7")
    agent.path = t.path.with_suffix("") / "subagents" / "agent-7.jsonl"
    agent.path.parent.mkdir(parents=True)
    agent.append(agent.prompt("dig", sessionId=MAIN, isSidechain=True))
    agent.path.with_suffix(".meta.json").write_text(
        json.dumps({"toolUseId": "c3", "agentType": f"type-{secret('agent')}"})
    )
    world.ingest()
    return world


@pytest.mark.parametrize("kind", ["json", "md", "html", "sqlite", "atif", "otel"])
def test_no_name_contains_a_secret(planted, tmp_path, kind):
    target = tmp_path / "out"
    planted.run("sess", "export", kind, MAIN, "-o", target, "--no-sync", check=0)
    told = target.read_bytes().decode("utf-8", "replace")
    assert [place for place in PLACES if secret(place) in told] == []
    assert "hunter2" not in told
    assert str(planted.root) not in told


def test_the_secrets_are_there_without_redaction(planted):
    done = planted.run("sess", "export", "json", MAIN, "-o", "-", "--no-redact", check=0)
    assert [place for place in PLACES if secret(place) not in done.stdout] == []


@pytest.mark.parametrize("before", [155, 175, 190])
def test_half_a_secret_at_the_end_of_a_long_title_is_left_out(world, before):
    t = world.transcript()
    t.append(t.prompt(f"look {'w' * before} {secret('title')} and more"), t.answer("ok"))
    world.ingest()
    done = world.run("sess", "export", "json", MAIN, "-o", "-", "--no-sync", check=0)
    title = json.loads(done.stdout)["session"]["title"]
    assert title.startswith("look www")
    assert "ghp_" not in title


def test_a_long_title_without_blanks_stays(world):
    t = world.transcript()
    t.append(t.prompt("木" * 300), t.answer("ok"))
    world.ingest()
    done = world.run("sess", "export", "json", MAIN, "-o", "-", "--no-sync", check=0)
    assert json.loads(done.stdout)["session"]["title"] == "木" * 199 + "…"


def test_no_file_of_a_site_contains_the_home(planted, tmp_path):
    site = tmp_path / "site"
    planted.run("sess", "export", "site", "-o", site, "--no-sync", check=0)
    telling = [
        path.name
        for path in site.rglob("*")
        if path.is_file() and str(planted.root).encode() in path.read_bytes()
    ]
    assert telling == []
