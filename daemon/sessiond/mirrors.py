"""Transcripts that repeat what a database tells better: archived, but shown only without it.

Whichever is read first, the outcome is the same, so this is settled at the end of a transaction.
"""

from __future__ import annotations

import apsw

_MIRRORS = (
    "SELECT r.id, r.generation FROM session_sources m JOIN sources r ON r.id = m.source_id"
    " WHERE m.session_id = ?1 AND r.part_of IS NULL AND EXISTS (SELECT 1 FROM session_sources o"
    " JOIN sources p ON p.id = o.source_id WHERE o.session_id = ?1 AND p.part_of IS NOT NULL)"
)


def mirrored_turns(db: apsw.Connection, session_id: int) -> list[tuple[int, int]]:
    """(turn, generation to retire it with) of every file that a database makes needless."""
    found = []
    for source_id, generation in list(db.execute(_MIRRORS, (session_id,))):
        db.execute("UPDATE sources SET kind = 'mirror' WHERE id = ?", (source_id,))
        found += [
            (turn_id, generation)
            for (turn_id,) in db.execute(
                "SELECT id FROM turns WHERE session_id = ? AND source_id = ? AND retired = 0",
                (session_id, source_id),
            )
        ]
    return found
