"""What is left to do, once, after an older version or a killed process wrote the index.

Everything here continues where it was stopped, and costs a look at `facts` when there is nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import apsw

from sess_common.program import counted
from sess_common.progress import Progress, unseen
from sess_schema.queries.views import parts
from sess_schema.queries.views.overview import SUBSCRIPTIONS
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
