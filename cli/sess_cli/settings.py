"""What config.toml says to the client. The daemon checks the file and reports what is wrong."""

from __future__ import annotations

import os

from sess_common import paths
from sess_common.classes import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    history: bool = False  # [search] history
    pager: str | None = None  # [output] pager; empty for none
    keep_days: float = 30.0  # [edit] keep_days


def read() -> Settings:
    """The settings; the defaults if there are none, or if they cannot be read."""
    path = paths.home().settings_file
    if not os.path.exists(path):
        return Settings()
    import tomllib  # 3 ms

    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except (OSError, ValueError):
        return Settings()
    pager = _of(values, "output", "pager")
    days = _of(values, "edit", "keep_days")
    return Settings(
        keep_days=float(days) if isinstance(days, int | float) and days > 0 else 30.0,
        history=_of(values, "search", "history") is True,
        pager="" if pager is False else pager if isinstance(pager, str) else None,
    )


def _of(values: dict[str, object], section: str, key: str) -> object:
    table = values.get(section)
    return table.get(key) if isinstance(table, dict) else None
