"""What config.toml says not to read: agents, projects, and paths."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

_WILD = frozenset("*?[")


@dataclass(slots=True, frozen=True)
class Exclude:
    """A folder excludes what is below it; `*`, `?` and `[...]` match as in a shell."""

    agents: frozenset[str] = frozenset()
    projects: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def has_path(self, path: str) -> bool:
        return any(_covers(rule, path) for rule in self.paths)

    def has_project(self, project: str | None) -> bool:
        return project is not None and any(_covers(rule, project) for rule in self.projects)


def folders(listed: Iterable[str]) -> tuple[str, ...]:
    """Rules as they are compared."""
    return tuple(os.path.expanduser(rule).rstrip("/\\") or "/" for rule in listed)


def _covers(rule: str, path: str) -> bool:
    if path == rule or path.startswith((rule + "/", rule + "\\")):
        return True
    if _WILD.isdisjoint(rule):
        return False
    return fnmatchcase(path, rule) or fnmatchcase(path, rule + "/*")
