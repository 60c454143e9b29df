"""Prices that changed since the index was last priced: a new version of ours, or of the user's."""

from __future__ import annotations

from zlib import crc32

import apsw

from sess_schema import __version__
from sess_schema.progress import Progress, unseen, while_running
from sessiond.config import Config
from sessiond.prices.pricing import Pricer, reprice

_FACT = "priced_by"
_RULES = 2  # grows when a row says something else about the same prices


def pricer_of(config: Config) -> Pricer:
    return Pricer(config.prices)


def reprice_if_due(db: apsw.Connection, config: Config, progress: Progress = unseen) -> int:
    """Price everything anew when program or configuration changed; how many rows did."""
    mark = f"{__version__} {_RULES} {crc32(repr(sorted(config.prices.items())).encode())}"
    if db.execute("SELECT value FROM facts WHERE name = ?", (_FACT,)).get == mark:
        return 0
    return reprice_all(db, config, progress, mark)


def reprice_all(
    db: apsw.Connection, config: Config, progress: Progress = unseen, mark: str | None = None
) -> int:
    with while_running(db, progress, "pricing all responses again"):
        changed = reprice(db, pricer_of(config))
    if mark is not None:
        db.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (_FACT, mark))
    return changed
