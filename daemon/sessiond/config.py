"""Reads config.toml: roots per agent, what to leave out, prices, how often to check everything."""

from __future__ import annotations

import math
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sess_common.errors import Exit, SessError
from sessiond import config_keys
from sessiond.reading.exclude import Exclude, folders
from sessiond.sourcekit import disk

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker


@dataclass(slots=True, frozen=True)
class Config:
    roots: dict[str, list[str]] = field(default_factory=dict)
    reconcile_seconds: float = 120.0
    prices: dict[str, dict[str, int]] = field(default_factory=dict)  # as prices/table.py reads them
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
    unknown = set(values) - set(config_keys.sections())
    if unknown:
        known = ", ".join(config_keys.sections())
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
        folders(section.get("projects", ())),
        folders(section.get("paths", ())),
    )


def _mask(path: Path, section: Any) -> Masker | None:
    from sess_redaction import rules  # rarely needed

    patterns = rules.checked(path, section)
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
        allowed = config_keys.names(section)
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
    from sessiond.prices.table import read_overrides  # rarely needed

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
