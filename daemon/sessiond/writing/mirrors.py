"""Sources that repeat what a better one tells: archived, but shown only where they are alone.

A conversation of Cursor may be in the editor's database, in a chat of its agent and in a
transcript. Whichever is read first, the outcome is the same.
"""

from __future__ import annotations

import apsw


def enroll(db: apsw.Connection, source_id: int | None, session_id: int, fallback: int) -> None:
    """A source tells of a session."""
    db.execute(
        "INSERT OR IGNORE INTO session_sources (session_id, source_id) VALUES (?, ?)",
        (session_id, source_id),
    )
    if fallback:
        db.execute("UPDATE sources SET fallback = ? WHERE id = ?", (fallback, source_id))


def mirrors(db: apsw.Connection, session_id: int) -> dict[int, int]:
    """The sources of a session that a better one makes needless, with their generations."""
    found = dict(
        iter(
            db.execute(
                "SELECT r.id, r.generation FROM session_sources m JOIN sources r"
                " ON r.id = m.source_id WHERE m.session_id = ?1 AND r.fallback > (SELECT"
                " min(o.fallback) FROM session_sources n JOIN sources o ON o.id = n.source_id"
                " WHERE n.session_id = ?1)",
                (session_id,),
            )
        )
    )
    db.executemany(
        "UPDATE sources SET kind = 'mirror' WHERE id = ?", [(source_id,) for source_id in found]
    )
    return found


def live_turns(db: apsw.Connection, session_id: int, source_id: int) -> list[int]:
    return [
        turn_id
        for (turn_id,) in db.execute(
            "SELECT id FROM turns WHERE session_id = ? AND source_id = ? AND retired = 0",
            (session_id, source_id),
        )
    ]
