"""`sessiond agents`: what is on the machine, what is read of it, and what is not."""

from __future__ import annotations

import json
import os

import pytest

from sessiond.service import agents


@pytest.fixture
def home(world, monkeypatch):
    monkeypatch.setenv("HOME", str(world.root))
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    log = world.transcript()
    log.append(log.prompt("hello"))
    world.ingest()
    return world


def listed(capsys):
    agents.show(as_json=True, every=True)
    return {
        facts["title"]: facts for facts in map(json.loads, capsys.readouterr().out.splitlines())
    }


def test_what_was_found_is_counted(home, capsys):
    """Sessions and the last activity come from the index, places from the disk."""
    found = listed(capsys)
    assert found["Claude Code"]["found"]
    assert found["Claude Code"]["sessions"] == 1
    assert found["Claude Code"]["last_activity"] == "2026-02-01T10:00:01.000Z"
    assert not found["Gemini CLI"]["found"]
    assert found["Gemini CLI"]["places"][:1] == [
        {"path": str(home.root / ".gemini" / "tmp"), "exists": False}
    ]


def test_people_see_what_is_here_first(home, capsys):
    """Agents that are not on the machine are only named, unless all are asked for."""
    agents.show(as_json=False, every=False)
    short = capsys.readouterr().out
    assert short.startswith("Claude Code (claude)\n  sessions   1, last 2026-02-01T10:00:01.000Z\n")
    assert "looked in  ~/.claude/projects\n" in short
    assert "\nGemini CLI (gemini)\n" not in short
    assert "Goose" in short.partition("\nnot here ")[2]
    agents.show(as_json=False, every=True)
    assert "\nGemini CLI (gemini)\n" in capsys.readouterr().out


def test_what_is_here_and_not_read_is_said(home, capsys):
    """Excluded by the owner, or not known to us; `sess doctor` names both."""
    (home.state / "config.toml").write_text('[exclude]\nagents = ["claude"]\n')
    (home.root / ".qoder").mkdir()
    found = listed(capsys)
    assert found["Claude Code"]["excluded"]
    assert (found["Qoder"]["agent"], found["Qoder"]["found"]) == (None, True)
    done = home.run("sess", "doctor", "--json")
    (check,) = [
        one for one in map(json.loads, done.stdout.splitlines()) if one["check"] == "agents"
    ]
    assert check["state"] == "ok"
    assert check["details"] == [
        "Claude Code: excluded by config.toml",
        "Qoder: not known to sessiond",
    ]


def test_without_an_index_nothing_is_counted(home, capsys):
    """The list works before the first pass."""
    (home.state / "index.db").unlink()
    assert listed(capsys)["Claude Code"]["sessions"] == 0


def test_files_that_no_rule_claims_are_counted(home, capsys):
    """By ending, with the newest; what belongs to a conversation is claimed, links are not read."""
    chats = home.root / ".gemini" / "tmp" / "kites" / "chats"
    chats.mkdir(parents=True)
    for name in ("a.future", "b.future", "session-1.json", "session-2.jsonl", "notes"):
        (chats / name).write_text("{}\n")
    (chats / "empty.future").touch()
    (chats / "link.future").symlink_to(chats / "a.future")
    (chats.parent / ".project_root").write_text("/home/ada/kites")
    os.utime(chats / "b.future", (1, 1))
    place = next(one for one in listed(capsys)["Gemini CLI"]["places"] if one["exists"])
    assert place["unclaimed"] == [
        {"ending": ".future", "files": 2, "newest": str(chats / "a.future")},
        {"ending": "", "files": 1, "newest": str(chats / "notes")},
    ]
    agents.show(as_json=False, every=False)
    assert "unclaimed  2 .future files; newest: ~/.gemini/tmp/" in capsys.readouterr().out
    done = home.run("sess", "doctor", "--json")
    (check,) = [
        one for one in map(json.loads, done.stdout.splitlines()) if one["check"] == "unclaimed"
    ]
    assert check["message"] == "3 files in the agents' places that no rule claims"
    assert check["details"] == ["~/.gemini/tmp: 2 .future, 1 without ending"]
