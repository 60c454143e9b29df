"""Where to look: the filters that searches and lists share, as one SQL condition."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from sess_schema.errors import SessError

TYPES = ("user", "assistant", "thinking", "tool_use", "system", "summary")
_ALSO = {"tool": "tool_use", "prompt": "user", "tools": "tool_use"}
FAILED = ("error", "denied")


@dataclass(slots=True)
class Scope:
    """Filters on events; what is left empty filters nothing."""

    agents: Sequence[str] = ()
    projects: Sequence[str] = ()
    tools: Sequence[str] = ()
    types: Sequence[str] = ()
    failed: bool = False
    since: int | None = None
    until: int | None = None
    session: int | None = None  # with what it shares with the session it was forked from
    superseded: bool = False

    def condition(self) -> tuple[str, list[object]]:
        """SQL over `events e`, and its values."""
        parts, values = ["1"], list[object]()
        if not self.superseded:
            parts.append("e.retired = 0")
        types, failed = self._types()
        if types:
            parts.append(f"e.type IN ({_marks(types)})")
            values += types
        if failed:
            parts.append(f"e.status IN ({_marks(FAILED)})")
            values += FAILED
        if self.tools:
            parts.append(f"({' OR '.join(['lower(e.tool) GLOB ?'] * len(self.tools))})")
            values += [_lower(tool) for tool in self.tools]
        if self.since is not None:
            parts.append("e.ts >= ?")
            values.append(self.since)
        if self.until is not None:
            parts.append("e.ts < ?")
            values.append(self.until)
        if self.session is not None:
            parts.append(
                "e.turn_id IN (SELECT coalesce(copy_of, id) FROM turns WHERE session_id = ?"
                f"{'' if self.superseded else ' AND retired = 0'})"
            )
            values.append(self.session)
        if self.agents or self.projects:
            where, more = session_condition(self.agents, self.projects)
            parts.append(f"e.session_id IN (SELECT s.id FROM sessions s WHERE {where})")
            values += more
        return " AND ".join(parts), values

    def _types(self) -> tuple[list[str], bool]:
        failed, chosen = self.failed, []
        for name in self.types:
            if name == "error":
                failed = True
            elif (known := _ALSO.get(name, name)) in TYPES:
                chosen.append(known)
            else:
                raise SessError(f'no such type: "{name}"', hint=f"one of {', '.join(TYPES)}, error")
        return chosen, failed


def session_condition(agents: Sequence[str], projects: Sequence[str]) -> tuple[str, list[object]]:
    """SQL over `sessions s` for names of agents and places of projects."""
    parts, values = ["1"], list[object]()
    if agents:
        parts.append(f"({' OR '.join(['s.agent GLOB ?'] * len(agents))})")
        values += [f"{agent.lower()}*" for agent in agents]
    if projects:
        options = []
        for project in projects:
            places = _places(project)
            for place in places:
                options.append("s.project = ? OR substr(s.project, 1, ?) = ?")
                below = place.rstrip(os.sep) + os.sep
                values += [place, len(below), below]
            if not places:
                options.append("instr(lower(s.project), ?)")
                values.append(_lower(project))
        parts.append(f"({' OR '.join(options)})")
    return " AND ".join(parts), values


def _places(project: str) -> list[str]:
    """The directories that a path names, or none when it is part of a name.

    Agents write the directory they were started in, with or without links resolved.
    """
    if project not in (".", "..") and not project.startswith((os.sep, "~", "./", "../")):
        return []
    path = os.path.abspath(os.path.expanduser(project))
    found = [path, os.path.realpath(path)]
    if here := _logical_directory():
        found.append(os.path.normpath(os.path.join(here, os.path.expanduser(project))))
    return list(dict.fromkeys(found))


def _logical_directory() -> str | None:
    """The current directory as the shell came to it, through links; not one that PWD only claims,

    for whoever starts us in another directory may leave PWD as it was.
    """
    logical = os.environ.get("PWD", "")
    try:
        return logical if os.path.isabs(logical) and os.path.samefile(logical, ".") else None
    except OSError:
        return None


def _lower(text: str) -> str:
    """As SQLite's lower() does it: only ASCII changes."""
    return "".join(c.lower() if c.isascii() else c for c in text)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
