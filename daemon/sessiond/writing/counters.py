"""Counts the records, events, prompts and calls of each session."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from sess_schema.session import shown
from sessiond.writing.sessions import Sessions

_COUNTS = (
    "SELECT count(*), count(*) FILTER (WHERE type = 'user' AND ?2 <> 'subagent'),"
    " count(*) FILTER (WHERE type = 'tool_use' AND unjoined IS NULL)"
    f" FROM events WHERE id IN ({shown.IDS.replace('?', '?1')})"
)


class Counters:
    """Recounts sessions whose copies, joins or replaced records changed.

    A session that only grows is counted as records arrive; see `Session.count`.
    """

    def __init__(self, db: apsw.Connection, sessions: Sessions) -> None:
        self._db = db
        self._sessions = sessions
        self._changed: set[int] = set()

    def changed(self, *session_ids: int) -> None:
        self._changed.update(session_ids)

    def recount(self, also: Iterable[int] = ()) -> None:
        for session_id in self._changed.union(also):
            session = self._sessions.by_id(session_id)
            session.turns = self._db.execute(
                "SELECT count(*) FROM turns WHERE session_id = ?", (session_id,)
            ).get
            counts = self._db.execute(_COUNTS, (session_id, session.kind))
            session.events, session.prompts, session.tool_calls = next(iter(counts))
        self._changed.clear()
