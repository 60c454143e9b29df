"""Where each agent keeps its settings, and what belongs there: from the agents' documentation."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sess_cli.connect.settings_text import read_json, with_json, with_toml

NAME = "sess"
_SKILL = Path(__file__).with_name("SKILL.md")


@dataclass(frozen=True, slots=True)
class Edit:
    """A file, and what its text becomes."""

    path: Path
    change: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Layout:
    """The settings of one agent."""

    title: str
    file: Callable[[], Path]
    server: Callable[[str, list[str]], Callable[[str], str]]  # command and arguments → change
    skills: Callable[[], Path] | None = None
    hooks: Callable[[str], list[Edit]] | None = None

    def edits(self, command: str, *, hooks: bool) -> list[Edit]:
        edits = [Edit(self.file(), self.server(command, ["mcp"]))]
        if self.skills is not None:
            edits.append(
                Edit(
                    self.skills() / "past-sessions" / "SKILL.md",
                    lambda _: _SKILL.read_text("utf-8"),
                )
            )
        if hooks and self.hooks is not None:
            edits += self.hooks(command)
        return edits


def _home(variable: str, *default: str) -> Path:
    if value := os.environ.get(variable):
        return Path(value).expanduser()
    return Path.home().joinpath(*default)


def _config(*parts: str) -> Path:
    return _home("XDG_CONFIG_HOME", ".config").joinpath(*parts)


def _in_json(*path: str, **more: Any) -> Callable[[str, list[str]], Callable[[str], str]]:
    """A member of an object of servers, with the fields that most agents use."""

    def server(command: str, arguments: list[str]) -> Callable[[str], str]:
        value = {**more, "command": command, "args": arguments}
        return lambda text: with_json(text, [*path, NAME], value)

    return server


def _codex(command: str, arguments: list[str]) -> Callable[[str], str]:
    return lambda text: with_toml(
        text, ["mcp_servers", NAME], {"command": command, "args": arguments}
    )


def _copilot(command: str, arguments: list[str]) -> Callable[[str], str]:
    value = {"type": "local", "command": command, "args": arguments, "tools": ["*"]}
    return lambda text: with_json(text, ["mcpServers", NAME], value)


def _opencode(command: str, arguments: list[str]) -> Callable[[str], str]:
    """Version 2 has its servers one level deeper than version 1."""

    def change(text: str) -> str:
        servers = read_json(text)
        servers = servers.get("mcp") if isinstance(servers, dict) else None
        value: dict[str, Any] = {"type": "local", "command": [command, *arguments]}
        if isinstance(servers, dict) and servers and "servers" not in servers:
            return with_json(text, ["mcp", NAME], {**value, "enabled": True})
        return with_json(text, ["mcp", "servers", NAME], value)

    return change


def _opencode_file() -> Path:
    folder = _config("opencode")
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


def _claude_file() -> Path:
    if folder := os.environ.get("CLAUDE_CONFIG_DIR"):
        return Path(folder).expanduser() / ".claude.json"
    return Path.home() / ".claude.json"


def _claude_hooks(command: str) -> list[Edit]:
    """Their time-outs are in seconds."""
    call = {"type": "command", "command": f"{_quoted(command)} brief --hook", "timeout": 2}

    def change(text: str) -> str:
        for event, matcher in (("SessionStart", "compact|resume"), ("PostToolUseFailure", "Bash")):
            value = {"matcher": matcher, "hooks": [call]}
            text = with_json(text, ["hooks", event], value, item=True)
        return text

    return [Edit(_home("CLAUDE_CONFIG_DIR", ".claude") / "settings.json", change)]


def _quoted(command: str) -> str:
    import shlex

    return shlex.quote(command)


def _vscode_file() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/Code/User/mcp.json"
    return _config("Code", "User", "mcp.json")


LAYOUTS: dict[str, Layout] = {
    "claude": Layout(
        "Claude Code",
        _claude_file,
        _in_json("mcpServers", type="stdio"),
        lambda: _home("CLAUDE_CONFIG_DIR", ".claude") / "skills",
        _claude_hooks,
    ),
    "codex": Layout(
        "Codex",
        lambda: _home("CODEX_HOME", ".codex") / "config.toml",
        _codex,
        lambda: _home("CODEX_HOME", ".codex") / "skills",
    ),
    "cursor": Layout(
        "Cursor",
        lambda: Path.home() / ".cursor/mcp.json",
        _in_json("mcpServers"),
        lambda: Path.home() / ".cursor/skills",
    ),
    "gemini": Layout(
        "Gemini CLI", lambda: Path.home() / ".gemini/settings.json", _in_json("mcpServers")
    ),
    "copilot": Layout(
        "Copilot CLI",
        lambda: _home("COPILOT_HOME", ".copilot") / "mcp-config.json",
        _copilot,
    ),
    "opencode": Layout("OpenCode", _opencode_file, _opencode),
    "qwen": Layout(
        "Qwen Code", lambda: Path.home() / ".qwen/settings.json", _in_json("mcpServers")
    ),
    "windsurf": Layout(
        "Windsurf",
        lambda: Path.home() / ".codeium/windsurf/mcp_config.json",
        _in_json("mcpServers"),
    ),
    "zed": Layout(
        "Zed",
        lambda: _config("zed", "settings.json"),
        _in_json("context_servers", source="custom"),
    ),
    "vscode": Layout("VS Code", _vscode_file, _in_json("servers", type="stdio")),
}
