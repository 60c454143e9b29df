"""What a writer does before it reads: it takes the lock, reprices, and catches up.

Repricing and catching up are done once, after another version, other prices or a killed process.
They continue where they were stopped, and cost a look at `facts` when there is nothing to do.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from zlib import crc32

import apsw

from sess_common import lock
from sess_common.lock import WriterLock
from sess_common.paths import Home
from sess_common.program import counted
from sess_common.progress import Progress, unseen, while_running
from sess_schema import __version__, chains
from sess_schema.queries.views import parts
from sess_schema.queries.views.overview import PRICES, SUBSCRIPTIONS
from sessiond.config import Config
from sessiond.prices import Pricer, PriceTable, reprice
from sessiond.sourcekit.base import Source
from sessiond.writing.transaction import Store

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker

_PRICED_BY = "priced_by"
_PRICING_RULES = 4  # increase when the same prices give other rows
_ENDING_SECONDS = 10.0  # it commits what it has read


@contextmanager
def writer_lock(
    home: Home,
    mode: str,
    *,
    wait: float = 0.0,
    hint: str | None = None,
    background: bool = False,
    **facts: Any,
) -> Iterator[WriterLock]:
    """Hold the lock, and let others read what for; `hint` is for who finds it taken.

    A load in the background gives way to whoever does not read in the background.
    """
    home.create()
    if not background:
        end_background(home)
    held = lock.acquire(home.lock, wait=wait)
    if held is None:
        running = lock.already_running(home.lock)
        running.hint = hint or running.hint
        raise running
    try:
        held.describe(mode=mode, version=__version__, background=background, **facts)
        yield held
    finally:
        held.release()


def end_background(home: Home) -> int | None:
    """End a load in the background, if there is one; its process. What it has read is kept."""
    holder = lock.holder(home.lock) or {}
    if not holder.get("background"):
        return None
    pid = int(holder["pid"])
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _ENDING_SECONDS
    while (lock.holder(home.lock) or {}).get("pid") == pid and time.monotonic() < deadline:
        time.sleep(0.02)
    return pid


def reprice_if_due(db: apsw.Connection, config: Config, progress: Progress = unseen) -> int:
    """Reprice everything if program or configuration changed; return how many rows changed."""
    mark = f"{__version__} {_PRICING_RULES} {crc32(repr(sorted(config.prices.items())).encode())}"
    if db.execute("SELECT value FROM facts WHERE name = ?", (_PRICED_BY,)).get == mark:
        return 0
    some = db.execute("SELECT EXISTS (SELECT 1 FROM usage)").get
    changed = reprice_all(db, config, progress) if some else 0
    dates = json.dumps(PriceTable.load(config.prices).dates)
    for fact in ((_PRICED_BY, mark), (PRICES, dates)):
        db.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", fact)
    return changed


def reprice_all(db: apsw.Connection, config: Config, progress: Progress = unseen) -> int:
    with while_running(db, progress, "repricing all responses"):
        return reprice(db, Pricer(config.prices))


def catch_up(
    store: Store,
    sources: Sequence[Source],
    progress: Progress = unseen,
    stopped: Callable[[], bool] = lambda: False,
    mask: Masker | None = None,
) -> list[str]:
    """Do what is left to do, and say in one line each what was done."""
    db = store.db
    done = []
    note_agents(db, sources)
    parts.begin_anew(db)
    if _has_older_editions(db, sources):
        from sessiond.writing.reread import reread  # once, if at all

        count = reread(store, {one.agent: one for one in sources}, progress, stopped, mask)
        done.append(f"read {counted(count, 'archived log')} again")
    if db.execute("SELECT 1 FROM facts WHERE name = 'forgotten_to_wipe'").get:
        from sessiond.writing.forget import wipe_if_needed

        wipe_if_needed(db)
        done.append("wiped out what was forgotten")
    return done


def note_agents(db: apsw.Connection, sources: Sequence[Source]) -> None:
    """Tell the client what it must know of agents: whom nobody pays by token, what each follows."""
    titles = json.dumps({one.agent: one.title for one in sources if one.subscription})
    followed = chains.as_fact({one.agent: one.chain for one in sources if one.chain})
    for name, value in ((SUBSCRIPTIONS, titles), (chains.CHAINS, followed)):
        if db.execute("SELECT value FROM facts WHERE name = ?", (name,)).get != value:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def _has_older_editions(db: apsw.Connection, sources: Sequence[Source]) -> bool:
    editions = {one.agent: one.edition for one in sources}
    stored = db.execute("SELECT DISTINCT agent, edition FROM sources WHERE part_of IS NULL")
    return any(editions.get(agent, edition) != edition for agent, edition in stored)
