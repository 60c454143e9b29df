"""`sess connect`: on copies of real layouts, byte for byte there and back."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from typing import Any

import pytest
from tests.conftest import BIN

from sess_cli.connect.layouts import LAYOUTS
from sess_cli.connect.settings_text import read_json

# As people have them: comments, tabs, trailing commas, no final newline, Windows line ends.
REAL = {
    "claude": (
        ".claude.json",
        (
            '{\n  "numStartups": 12,\n  "projects": {\n    "/code": {\n      "mcpServers": {}\n'
            '    }\n  },\n  "mcpServers": {\n    "github": {\n      "type": "stdio",\n'
            '      "command": "gh-mcp",\n      "args": [],\n      "env": {}\n    }\n  }\n}'
        ),
    ),
    "codex": (
        ".codex/config.toml",
        (
            'model = "gpt-5.4" # fast\n\n[projects."/code/demo"]\ntrust_level = "trusted"\n\n'
            '[mcp_servers.docs]\ncommand = "docs"\nargs = ["--quiet"]\n'
        ),
    ),
    "cursor": (
        ".cursor/mcp.json",
        '{\r\n\t"mcpServers": {\r\n\t\t"a": {"url": "http://x"}\r\n\t}\r\n}\r\n',
    ),
    "gemini": (
        ".gemini/settings.json",
        '{\n  "ui": {"theme": "GitHub"},\n  "security": {"auth": {"selectedType": "oauth"}}\n}\n',
    ),
    "copilot": (".copilot/mcp-config.json", '{\n  "mcpServers": {}\n}\n'),
    "opencode": (
        ".config/opencode/opencode.json",
        (
            '{\n  "$schema": "https://opencode.ai/config.json",\n  // local ones\n  "mcp": {\n'
            '    "files": {"type": "local", "command": ["files"], "enabled": true},\n  },\n}\n'
        ),
    ),
    "zed": (
        ".config/zed/settings.json",
        '// Zed settings\n{\n  "theme": "One Dark", // dark\n  "vim_mode": true,\n}\n',
    ),
}


@pytest.fixture
def connect(world):
    def run(*arguments: str, code: int = 0) -> Any:
        done = world.run("sess", "connect", *arguments)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    return run


def written(world, agent: str):
    name, text = REAL[agent]
    path = world.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def server_of(agent: str, text: str):
    if agent == "codex":
        return tomllib.loads(text)["mcp_servers"]["sess"]
    values = read_json(text)
    places = {"opencode": "mcp", "zed": "context_servers"}
    return values[places.get(agent, "mcpServers")]["sess"]


@pytest.mark.parametrize("agent", REAL)
def test_there_and_back(world, connect, agent):
    path = written(world, agent)
    before = path.read_bytes()
    path.chmod(0o640)
    connect(agent, "--dry-run")
    assert path.read_bytes() == before
    done = connect(agent, "--yes")
    assert f"undo: sess connect {agent} --undo" in done.stderr
    text = path.read_text()
    server = server_of(agent, text)
    command = server["command"]
    assert [command, *server.get("args", [])] in (
        [str(BIN / "sess"), "mcp"],
        [[str(BIN / "sess"), "mcp"]],
    )
    for line in before.decode().splitlines():
        assert line.rstrip(",}") in text  # comments too
    ends = b"\r\n" if b"\r\n" in before else b"\n"
    assert path.read_bytes().count(ends) == path.read_bytes().count(b"\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    done = connect(agent, "--yes")
    assert "is connected already" in done.stderr
    connect(agent, "--undo")
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("agent", LAYOUTS)
def test_a_new_file_is_deleted_again(world, connect, agent):
    before = sorted(path for path in world.root.rglob("*") if world.state not in path.parents)
    connect(agent, "--yes", *(["--hooks"] if LAYOUTS[agent].has_hooks else []))
    assert "connected" in next(
        line for line in connect().stdout.splitlines() if line.startswith(agent)
    )
    connect(agent, "--undo")
    after = sorted(path for path in world.root.rglob("*") if world.state not in path.parents)
    assert [path for path in after if path != world.state] == [
        path for path in before if path != world.state
    ]


def test_hooks_and_skill_of_claude(world, connect):
    settings = world.root / ".claude/settings.json"
    settings.write_text('{"hooks": {"SessionStart": [{"matcher": "startup", "hooks": []}]}}')
    connect("claude", "--hooks", "--yes")
    hooks = json.loads(settings.read_text())["hooks"]
    call = {"type": "command", "command": f"{BIN / 'sess'} brief --hook", "timeout": 2}
    assert hooks["SessionStart"][1] == {"matcher": "compact|resume", "hooks": [call]}
    assert hooks["PostToolUseFailure"] == [{"matcher": "Bash", "hooks": [call]}]
    skill = (world.root / ".claude/skills/past-sessions/SKILL.md").read_text()
    assert skill.startswith("---\nname: past-sessions\ndescription: ")
    done = connect("codex", "--hooks", code=2)
    assert "no hooks for Codex yet" in done.stderr


def test_a_broken_file_is_refused_and_untouched(world, connect):
    path = written(world, "gemini")
    path.write_text('{"ui": {"theme": }}')
    done = connect("gemini", "--yes", code=2)
    assert f'cannot understand "{path}": line 1: a value is missing' in done.stderr
    assert path.read_text() == '{"ui": {"theme": }}'
    assert "line 1: a value is missing" in connect().stdout


def test_nobody_to_ask_changes_nothing(world, connect):
    path = written(world, "cursor")
    before = path.read_bytes()
    done = connect("cursor", code=2)
    assert "nobody to ask" in done.stderr
    assert path.read_bytes() == before


def test_undo_after_others_changed_the_file(world, connect):
    """What was added goes, and what they changed stays."""
    path = written(world, "gemini")
    connect("gemini", "--yes")
    path.write_text(path.read_text().replace('"GitHub"', '"Ayu"'))
    connect("gemini", "--undo")
    assert path.read_text() == REAL["gemini"][1].replace('"GitHub"', '"Ayu"')
    done = connect("gemini", "--undo", code=2)
    assert "nothing to undo" in done.stderr


def test_a_linked_settings_file_stays_a_link(world, connect):
    """People keep their settings in a repository."""
    path = written(world, "cursor")
    kept = world.root / "dotfiles.json"
    path.rename(kept)
    path.symlink_to(kept)
    before = kept.read_bytes()
    connect("cursor", "--yes")
    assert path.is_symlink()
    assert kept.read_bytes() != before
    connect("cursor", "--undo")
    assert path.is_symlink()
    assert kept.read_bytes() == before


def test_by_hand(world, connect):
    path = written(world, "claude")
    before = path.read_bytes()
    text = connect("claude", "--print").stdout
    assert text.startswith(f"# {path}\n")
    assert '"sess": {' in text
    assert "gh-mcp" not in text
    assert path.read_bytes() == before


def test_slips(connect):
    done = connect("cloude", code=2)
    assert done.stderr.endswith("hint: did you mean claude?\n")


def test_backups_are_private(world, connect):
    written(world, "claude")
    connect("claude", "--yes")
    folder = world.state / "connect/claude"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert os.listdir(folder)
