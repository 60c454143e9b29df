"""The settings of each agent, as `layouts.toml` describes them."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sess_cli.connect.settings_text import read_json, with_json, with_toml

_HERE = Path(__file__).parent
_SKILL = _HERE / "SKILL.md"
_SKILL_NAME = "past-sessions"
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Edit:
    """A file, and what its text becomes."""

    path: Path
    change: Callable[[str], str]


class Layout:
    """The settings of one agent."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._described = described
        self.title: str = described["title"]
        self.has_hooks = "hooks" in described

    def edits(self, command: str, *, hooks: bool) -> list[Edit]:
        words = {
            "COMMAND": command,
            "ARGUMENTS": ["mcp"],
            "WORDS": [command, "mcp"],
            "HOOK": f"{shlex.quote(command)} brief --hook",
        }
        edits = [Edit(self._settings(), lambda text: self._with_server(text, words))]
        if "skills" in self._described:
            path = _expanded(self._described["skills"]) / _SKILL_NAME / _SKILL.name
            edits.append(Edit(path, lambda _: _SKILL.read_text("utf-8")))
        if hooks:
            edits += self._hooks(words)
        return edits

    def _settings(self) -> Path:
        described = self._described
        commented = described.get("commented")
        if commented is not None and _expanded(commented).exists():
            return _expanded(commented)
        return _expanded(described.get(f"settings_{sys.platform}", described["settings"]))

    def _with_server(self, text: str, words: dict[str, Any]) -> str:
        described = self._described
        if described["settings"].endswith(".toml"):
            return with_toml(text, described["server"], _filled(described["value"], words))
        older = described.get("older")
        if older is not None:
            values = read_json(text)
            there = values.get(older["where"]) if isinstance(values, dict) else None
            if isinstance(there, dict) and there and older["without"] not in there:
                described = older
        return with_json(text, described["server"], _filled(described["value"], words))

    def _hooks(self, words: dict[str, Any]) -> list[Edit]:
        """One edit for each file, whatever the number of hooks in it."""
        files: dict[Path, list[dict[str, Any]]] = {}
        for hook in self._described["hooks"]:
            files.setdefault(_expanded(hook["settings"]), []).append(hook)

        def changing(hooks: list[dict[str, Any]]) -> Callable[[str], str]:
            def change(text: str) -> str:
                for hook in hooks:
                    value = _filled(hook["value"], words)
                    text = with_json(text, hook["list"], value, item=True)
                return text

            return change

        return [Edit(path, changing(hooks)) for path, hooks in files.items()]


def _expanded(place: str) -> Path:
    """A path with the agent's own variables, of which an empty one counts as none."""
    return Path(
        _VARIABLE.sub(lambda match: os.environ.get(match[1]) or match[2], place)
    ).expanduser()


def _filled(value: Any, words: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(one, words) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, words) for one in value]
    return words.get(value, value) if isinstance(value, str) else value


def _read() -> dict[str, Layout]:
    described = tomllib.loads((_HERE / "layouts.toml").read_text("utf-8"))
    return {name: Layout(agent) for name, agent in described.items()}


LAYOUTS = _read()
