"""config.toml: its keys, and what it says of roots, prices and what to leave out."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sess_common.errors import Exit, SessError
from sessiond.sourcekit import disk

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker


_WILD = frozenset("*?[")


class Key(NamedTuple):
    section: str
    name: str  # in capitals if people choose it
    default: Any
    example: str  # as TOML
    meaning: str

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"


KEYS = (
    Key(
        "roots", "AGENT", {}, 'claude = ["~/backup/claude/projects"]',
        "Directories to read besides an agent's own, by the agent's name in `sessiond agents`."
        " A service does not see your shell's variables, so name moved directories here.",
    ),
    Key(
        "exclude", "agents", [], 'agents = ["aider"]',
        "Agents that are not read. What is in the index already stays until you `sess forget` it.",
    ),
    Key(
        "exclude", "projects", [], 'projects = ["~/private", "/srv/*/secret"]',
        "Projects that are not read, by their folder; `*` matches anything.",
    ),
    Key(
        "exclude", "paths", [], 'paths = ["~/.claude/projects/-home-me-scratch"]',
        "Files and folders that are not read; `*` matches anything.",
    ),
    Key(
        'prices."MODEL"', "input", {}, "input = 3.0",
        "Dollars per million tokens of a model, instead of the built-in price; needs `output` too.",
    ),
    Key('prices."MODEL"', "output", {}, "output = 15.0", "The same for what the model writes."),
    Key(
        'prices."MODEL"', "cache_write", {}, "cache_write = 3.75",
        "The same for what is written to the cache for five minutes.",
    ),
    Key(
        'prices."MODEL"', "cache_write_1h", {}, "cache_write_1h = 6.0",
        "The same for what is written to the cache for an hour.",
    ),
    Key(
        'prices."MODEL"', "cache_read", {}, "cache_read = 0.3",
        "The same for what is read from the cache.",
    ),
    Key(
        "search", "history", False, "history = true",
        "Note searches, for `sess search --history`.",
    ),
    Key(
        "output", "pager", None, 'pager = "less -S"',
        "The pager for long output on a terminal; `false` for none. Without it, `PAGER` or `less`."
        " The variable `SESS_PAGER` comes before it.",
    ),
    Key(
        "redact", "patterns", [], "patterns = ['ACME-[0-9]{6}', 'badge no\\. ([0-9]+)']",
        "Regular expressions of what exports mask besides secrets; if one has a group, only that.",
    ),
    Key(
        "redact", "at_ingest", False, "at_ingest = true",
        "Mask secrets with `*` before anything is written: in the texts and in the archive, which"
        " then restores masked bytes. What is in the index already stays until you `sess forget`"
        " it.",
    ),
    Key(
        "edit", "keep_days", 30, "keep_days = 30",
        "Days for which `sess undo` can undo an edit of a transcript.",
    ),
    Key(
        "daemon", "reconcile_seconds", 120, "reconcile_seconds = 120",
        "Seconds between full scans of all files; changes are noticed at once without them.",
    ),
)  # fmt: skip


def sections() -> list[str]:
    return [*dict.fromkeys(key.section.partition(".")[0] for key in KEYS)]


def keys_in(section: str) -> list[str]:
    return [key.name for key in KEYS if key.section == section]


def example_file(*, commented: bool = False) -> str:
    """A file with every key."""
    lines: list[str] = []
    for section in dict.fromkeys(key.section for key in KEYS):
        lines += ["", f"[{section}]".replace("MODEL", "my-model")]
        for key in KEYS:
            if key.section == section:
                lines += [*_as_comment(key.meaning), key.example]
    if commented:
        lines = [f"#{line}" if line and not line.startswith("#") else line for line in lines]
    return "\n".join(lines[1:]) + "\n"


def _as_comment(text: str) -> list[str]:
    import textwrap  # rarely needed

    return textwrap.wrap(text, 96, initial_indent="# ", subsequent_indent="# ")


@dataclass(slots=True, frozen=True)
class Exclude:
    """A folder excludes what is below it; `*`, `?` and `[...]` match as in a shell."""

    agents: frozenset[str] = frozenset()
    projects: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def has_path(self, path: str) -> bool:
        return any(_rule_covers(rule, path) for rule in self.paths)

    def has_project(self, project: str | None) -> bool:
        return project is not None and any(_rule_covers(rule, project) for rule in self.projects)


def folder_rules(listed: Iterable[str]) -> tuple[str, ...]:
    """Rules as they are compared."""
    return tuple(os.path.expanduser(rule).rstrip("/\\") or "/" for rule in listed)


def _rule_covers(rule: str, path: str) -> bool:
    if path == rule or path.startswith((rule + "/", rule + "\\")):
        return True
    if _WILD.isdisjoint(rule):
        return False
    return fnmatchcase(path, rule) or fnmatchcase(path, rule + "/*")


@dataclass(slots=True, frozen=True)
class Config:
    roots: dict[str, list[str]] = field(default_factory=dict)
    reconcile_seconds: float = 120.0
    prices: dict[str, dict[str, int]] = field(default_factory=dict)  # pico-dollars
    exclude: Exclude = field(default_factory=Exclude)
    mask: Masker | None = None  # secrets are masked before they are written


def load(path: Path) -> Config:
    """The configuration, or the defaults if there is no file."""
    try:
        with open(disk.opened(str(path)), "rb") as file:
            values = tomllib.load(file)
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path, str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise _wrong(path, str(error)) from error
    unknown = set(values) - set(sections())
    if unknown:
        known = ", ".join(sections())
        raise _wrong(path, f"unknown section [{min(unknown)}]; there are {known}")
    _check_client(path, values)
    _check_edit(path, values.get("edit", {}))
    return Config(
        _roots(path, values.get("roots", {})),
        _seconds(path, values.get("daemon", {})),
        _prices(path, values["prices"]) if "prices" in values else {},
        _exclude(path, values.get("exclude", {})),
        _mask(path, values["redact"]) if "redact" in values else None,
    )


def _roots(path: Path, section: Any) -> dict[str, list[str]]:
    if not isinstance(section, dict):
        raise _wrong(path, "[roots] must be a table")
    roots = {}
    for agent, places in section.items():
        if not isinstance(places, list) or not all(isinstance(place, str) for place in places):
            raise _wrong(path, f"roots.{agent} must be a list of directories")
        if any(not place.strip() or "\0" in place for place in places):
            raise _wrong(path, f"roots.{agent} names no directory")
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
        folder_rules(section.get("projects", ())),
        folder_rules(section.get("paths", ())),
    )


def _mask(path: Path, section: Any) -> Masker | None:
    from sess_redaction.redactor import checked_patterns  # rarely needed

    patterns = checked_patterns(path, section)
    if not section.get("at_ingest"):
        return None
    from sessiond.sourcekit.masking import Masker

    return Masker(patterns)


def _seconds(path: Path, section: Any) -> float:
    if not isinstance(section, dict) or set(section) - {"reconcile_seconds"}:
        raise _wrong(path, "[daemon] allows only reconcile_seconds")
    seconds = section.get("reconcile_seconds", 120)
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 1 <= seconds < math.inf:
        raise _wrong(path, "daemon.reconcile_seconds must be a number of 1 or more")
    return float(seconds)


def _check_client(path: Path, values: dict[str, Any]) -> None:
    """What only `sess` uses, except [edit]."""
    for section, kinds in (("search", bool), ("output", str | bool)):
        given = values.get(section, {})
        allowed = keys_in(section)
        if not isinstance(given, dict) or set(given) - set(allowed):
            raise _wrong(path, f"[{section}] allows only {', '.join(allowed)}")
        for name, value in given.items():
            if not isinstance(value, kinds) or (section == "output" and value is True):
                wanted = "true or false" if kinds is bool else "a command, or false"
                raise _wrong(path, f"{section}.{name} must be {wanted}")


def _check_edit(path: Path, section: Any) -> None:
    """Only `sess` uses it."""
    if not isinstance(section, dict) or set(section) - {"keep_days"}:
        raise _wrong(path, "[edit] allows only keep_days")
    days = section.get("keep_days", 30)
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days < math.inf:
        raise _wrong(path, "edit.keep_days must be a number above 0")


def _prices(path: Path, section: Any) -> dict[str, dict[str, int]]:
    from sessiond.prices import read_overrides  # rarely needed

    try:
        return read_overrides(section)
    except ValueError as error:
        raise _wrong(path, str(error)) from error


def _wrong(path: Path, why: str) -> SessError:
    return SessError(
        f'configuration "{path}": {why}',
        hint="`sessiond config --edit` opens it; docs/config.md describes every key",
        code=Exit.USAGE,
    )
