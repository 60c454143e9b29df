"""Reprices the index after the built-in or the user's prices changed."""

from __future__ import annotations

from zlib import crc32

import apsw

from sess_common.progress import Progress, unseen, while_running
from sess_schema import __version__
from sessiond.config import Config
from sessiond.prices.pricing import Pricer, reprice

_FACT = "priced_by"
_RULES = 3  # increase when the same prices give other rows


def pricer_of(config: Config) -> Pricer:
    return Pricer(config.prices)


def reprice_if_due(db: apsw.Connection, config: Config, progress: Progress = unseen) -> int:
    """Reprice everything if program or configuration changed; return how many rows changed."""
    mark = f"{__version__} {_RULES} {crc32(repr(sorted(config.prices.items())).encode())}"
    if db.execute("SELECT value FROM facts WHERE name = ?", (_FACT,)).get == mark:
        return 0
    return reprice_all(db, config, progress, mark)


def reprice_all(
    db: apsw.Connection, config: Config, progress: Progress = unseen, mark: str | None = None
) -> int:
    with while_running(db, progress, "repricing all responses"):
        changed = reprice(db, pricer_of(config))
    if mark is not None:
        db.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (_FACT, mark))
    return changed
