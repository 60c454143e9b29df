"""Reads config.toml: roots per agent, what to leave out, prices, how often to check everything."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sess_schema.errors import Exit, SessError
from sessiond.reading.exclude import Exclude, folders

EXAMPLE = """\
# Directories to read in addition to the default ones.
# A service does not see your shell's variables, so list moved directories here.
[roots]
claude = ["~/backup/claude/projects"]
cursor = ["~/backup/cursor"]

# Dollars per million tokens, to override the built-in prices.
[prices."my-model"]
input = 3.0
output = 15.0

# What not to read: agents, projects (by their folder) and files or folders; * matches anything.
# What is in the index already stays until you `sess forget` it.
[exclude]
agents = ["aider"]
projects = ["~/private", "/srv/*/secret"]
paths = ["~/.claude/projects/-home-me-scratch"]

# Regular expressions of what exports mask besides secrets; if one has a group, only that.
[redact]
patterns = ['ACME-[0-9]{6}', 'badge no\\. ([0-9]+)']

# Seconds between full scans of all files (changes are noticed at once without them).
[daemon]
reconcile_seconds = 120

# Days for which `sess undo` can undo an edit of a transcript.
[edit]
keep_days = 30
"""


@dataclass(slots=True, frozen=True)
class Config:
    roots: dict[str, list[str]] = field(default_factory=dict)
    reconcile_seconds: float = 120.0
    prices: dict[str, dict[str, int]] = field(default_factory=dict)  # as prices/table.py reads them
    exclude: Exclude = field(default_factory=Exclude)


def load(path: Path) -> Config:
    """The configuration, or the defaults if there is no file."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path, str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise _wrong(path, str(error)) from error
    unknown = set(values) - {
        "roots",
        "daemon",
        "search",
        "output",
        "prices",
        "exclude",
        "edit",
        "redact",
    }
    if unknown:
        raise _wrong(path, f"unknown section [{min(unknown)}]")
    _check_edit(path, values.get("edit", {}))
    if "redact" in values:
        from sess_schema.redaction import rules  # noqa: PLC0415 - rarely needed

        rules.checked(path, values["redact"])
    return Config(
        _roots(path, values.get("roots", {})),
        _seconds(path, values.get("daemon", {})),
        _prices(path, values["prices"]) if "prices" in values else {},
        _exclude(path, values.get("exclude", {})),
    )


def _roots(path: Path, section: Any) -> dict[str, list[str]]:
    if not isinstance(section, dict):
        raise _wrong(path, "[roots] must be a table")
    roots = {}
    for agent, places in section.items():
        if not isinstance(places, list) or not all(isinstance(place, str) for place in places):
            raise _wrong(path, f"roots.{agent} must be a list of directories")
        roots[agent] = [os.path.expanduser(place) for place in places]
    return roots


def _exclude(path: Path, section: Any) -> Exclude:
    allowed = ("agents", "projects", "paths")
    if not isinstance(section, dict) or set(section) - set(allowed):
        raise _wrong(path, f"[exclude] allows only {', '.join(allowed)}")
    for name, listed in section.items():
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise _wrong(path, f"exclude.{name} must be a list of texts")
    return Exclude(
        frozenset(section.get("agents", ())),
        folders(section.get("projects", ())),
        folders(section.get("paths", ())),
    )


def _seconds(path: Path, section: Any) -> float:
    if not isinstance(section, dict) or set(section) - {"reconcile_seconds"}:
        raise _wrong(path, "[daemon] allows only reconcile_seconds")
    seconds = section.get("reconcile_seconds", 120)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 1:
        raise _wrong(path, "daemon.reconcile_seconds must be a number of 1 or more")
    return float(seconds)


def _check_edit(path: Path, section: Any) -> None:
    """Only `sess` uses it."""
    if not isinstance(section, dict) or set(section) - {"keep_days"}:
        raise _wrong(path, "[edit] allows only keep_days")
    days = section.get("keep_days", 30)
    if isinstance(days, bool) or not isinstance(days, int | float) or not days > 0:
        raise _wrong(path, "edit.keep_days must be a number above 0")


def _prices(path: Path, section: Any) -> dict[str, dict[str, int]]:
    from sessiond.prices.table import read_overrides  # noqa: PLC0415 - rarely needed

    try:
        return read_overrides(section)
    except ValueError as error:
        raise _wrong(path, str(error)) from error


def _wrong(path: Path, why: str) -> SessError:
    return SessError(
        f'configuration "{path}": {why}',
        hint=f"for example:\n\n{EXAMPLE}",
        code=Exit.USAGE,
    )
