"""What is left to do, once, after an older version, other prices or a killed process.

Everything here continues where it was stopped, and costs a look at `facts` if there is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import apsw

from sess_common.program import counted
from sess_common.progress import Progress, unseen, while_running
from sess_schema import __version__
from sess_schema.queries.views import parts
from sess_schema.queries.views.overview import SUBSCRIPTIONS
from sessiond.config import Config
from sessiond.prices import Pricer, reprice
from sessiond.sourcekit.base import Source
from sessiond.writing.transaction import Store

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker


def catch_up(
    store: Store,
    sources: Sequence[Source],
    progress: Progress = unseen,
    stopped: Callable[[], bool] = lambda: False,
    mask: Masker | None = None,
) -> list[str]:
    """Do it, and say in one line each what was done."""
    db = store.db
    done = []
    _note_subscriptions(db, sources)
    parts.begin_anew(db)
    if _has_older_editions(store, sources):
        from sessiond.writing.reread import reread  # once, if at all

        count = reread(store, {one.agent: one for one in sources}, progress, stopped, mask)
        done.append(f"read {counted(count, 'archived log')} again")
    left = {name for (name,) in db.execute("SELECT name FROM facts")}
    if "forgotten_to_wipe" in left:
        from sessiond.writing.forget import wipe_if_needed

        wipe_if_needed(db)
        done.append("wiped out what was forgotten")
    return done


def _note_subscriptions(db: apsw.Connection, sources: Sequence[Source]) -> None:
    """Tell the client which agents nobody pays by token."""
    titles = json.dumps({one.agent: one.title for one in sources if one.subscription})
    if db.execute("SELECT value FROM facts WHERE name = ?", (SUBSCRIPTIONS,)).get != titles:
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (SUBSCRIPTIONS, titles))


def _has_older_editions(store: Store, sources: Sequence[Source]) -> bool:
    editions = {one.agent: one.edition for one in sources}
    stored = store.db.execute("SELECT DISTINCT agent, edition FROM sources WHERE part_of IS NULL")
    return any(editions.get(agent, edition) != edition for agent, edition in stored)


_PRICED_BY = "priced_by"
_PRICING_RULES = 3  # increase when the same prices give other rows


def pricer_of(config: Config) -> Pricer:
    return Pricer(config.prices)


def reprice_if_due(db: apsw.Connection, config: Config, progress: Progress = unseen) -> int:
    """Reprice everything if program or configuration changed; return how many rows changed."""
    mark = f"{__version__} {_PRICING_RULES} {crc32(repr(sorted(config.prices.items())).encode())}"
    if db.execute("SELECT value FROM facts WHERE name = ?", (_PRICED_BY,)).get == mark:
        return 0
    return reprice_all(db, config, progress, mark)


def reprice_all(
    db: apsw.Connection, config: Config, progress: Progress = unseen, mark: str | None = None
) -> int:
    with while_running(db, progress, "repricing all responses"):
        changed = reprice(db, pricer_of(config))
    if mark is not None:
        db.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (_PRICED_BY, mark))
    return changed
