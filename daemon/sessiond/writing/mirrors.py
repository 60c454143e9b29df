"""Sources that repeat a better source: archived, but shown only if there is no better one.

A conversation may be in an editor's database, in a chat of its agent and in a transcript.
The outcome does not depend on which is read first.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import apsw

from sess_schema.ids import SessionId, SourceId
from sessiond.sourcekit.base import SessionSpec
from sessiond.writing.copies import Copies
from sessiond.writing.session_facts import SessionFacts

_OUTRANKED = (
    "SELECT r.id, r.generation, r.kind FROM session_sources m JOIN sources r ON r.id = m.source_id"
    " WHERE m.session_id = ?1 AND r.fallback > (SELECT min(o.fallback) FROM session_sources n"
    " JOIN sources o ON o.id = n.source_id WHERE n.session_id = ?1)"
)

_LIVE = (
    "SELECT id, copy_of IS NOT NULL OR EXISTS (SELECT 1 FROM turns c WHERE c.copy_of = turns.id)"
    " FROM turns WHERE session_id = ? AND source_id = ? AND retired = 0"
)
_RETIRE = (
    "UPDATE events SET retired = ? WHERE turn_id IN (SELECT value FROM json_each(?))",
    "UPDATE turns SET retired = ? WHERE id IN (SELECT value FROM json_each(?))",
)


def bare(spec: SessionSpec) -> SessionSpec:
    """Without what only the best source of a session may say about it."""
    return replace(spec, title=None, project=None, folder=None)


class Mirrors:
    """Which sources have a session, and which of them are outranked."""

    def __init__(self, db: apsw.Connection, copies: Copies, facts: SessionFacts) -> None:
        self._db = db
        self._copies = copies
        self._facts = facts
        self._enrolled: set[tuple[int | None, int]] = set()  # sources with their sessions

    def enroll(self, source_id: SourceId | None, session_id: SessionId, fallback: int) -> bool:
        """Register a source that has records of a session; return whether it is new there."""
        if (source_id, session_id) in self._enrolled:
            return False
        self._enrolled.add((source_id, session_id))
        self._db.execute(
            "INSERT OR IGNORE INTO session_sources (session_id, source_id) VALUES (?, ?)",
            (session_id, source_id),
        )
        new = bool(self._db.changes())
        if fallback:
            self._db.execute("UPDATE sources SET fallback = ? WHERE id = ?", (fallback, source_id))
        return new

    def is_known_better(self, session_id: SessionId, fallback: int) -> bool:
        """Whether a better source than one that is new has the session."""
        better = (
            "SELECT EXISTS (SELECT 1 FROM session_sources m JOIN sources r ON r.id = m.source_id"
            " WHERE m.session_id = ? AND r.fallback < ?)"
        )
        return bool(self._db.execute(better, (session_id, fallback)).get)

    def is_outranked(
        self, source_id: SourceId | None, session_id: SessionId, fallback: int
    ) -> bool:
        """Whether a better source has the session."""
        return bool(fallback) and any(
            outranked == source_id for outranked, *_ in self._db.execute(_OUTRANKED, (session_id,))
        )

    def are_worse(self, session_id: SessionId) -> bool:
        """Whether some of the session's sources are outranked by another one."""
        return any(True for _ in self._db.execute(_OUTRANKED, (session_id,)))

    def retire(self, session_id: SessionId) -> bool:
        """Hide what a better source also has; return whether something was not yet hidden."""
        db = self._db
        outranked: list[Any] = db.execute(_OUTRANKED, (session_id,)).fetchall()
        for source_id, generation, _ in outranked:
            db.execute("UPDATE sources SET kind = 'mirror' WHERE id = ?", (source_id,))
            live: list[Any] = db.execute(_LIVE, (session_id, source_id)).fetchall()
            for turn_id in [turn_id for turn_id, is_shared in live if is_shared]:
                self._copies.retire(turn_id, session_id, generation)
                db.execute("UPDATE turns SET retired = ? WHERE id = ?", (generation, turn_id))
            alone = json.dumps([turn_id for turn_id, is_shared in live if not is_shared])
            for update in _RETIRE:
                db.execute(update, (generation, alone))
        self._facts.count_again(session_id)
        return any(kind != "mirror" for *_, kind in outranked)
