"""Deletes sessions for good: the only deletion there is.

Their rows go, their archived bytes, and what is left of both in free pages and in the full-text
index. The sources keep a row without content, so that a transcript that still exists is not read
again.
"""

from __future__ import annotations

from typing import Any

import apsw

from sess_schema import sums
from sess_schema.ids import SessionId
from sessiond.reading.tracked import FORGOTTEN, now_ms
from sessiond.writing.transaction import Store

TO_WIPE = "forgotten_to_wipe"  # a fact as long as deleted rows can still be read in the file
_WITH_SUBAGENTS = (
    "WITH RECURSIVE doomed (id) AS (SELECT value FROM json_each(?) UNION"
    " SELECT s.id FROM sessions s JOIN doomed d ON s.parent_id = d.id) SELECT id FROM doomed"
)


def forget(store: Store, sessions: list[SessionId], *, again: bool = False) -> dict[str, Any]:
    """Delete the sessions and their subagents; `again`: what is in their files is read anew."""
    db = store.db
    doomed = [key for (key,) in db.execute(_WITH_SUBAGENTS, (str(sessions),))]
    ids = ",".join(map(str, doomed))
    exists = db.execute(f"SELECT count(*) FROM sessions WHERE id IN ({ids})").get
    if not exists:
        wipe_if_needed(db)
        return {"sessions": 0, "shared": []}
    db.execute("INSERT INTO event_index (event_index, rank) VALUES ('secure-delete', 1)")
    store.begin()
    try:
        shared = _delete(store, ids, again=again)
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, '')", (TO_WIPE,))
        store.commit(flushed=True)
    except BaseException:
        store.roll_back()
        raise
    _wipe(db)
    return {"sessions": exists, "shared": shared}


def _delete(store: Store, ids: str, *, again: bool) -> list[str]:
    """Return the files that also belong to sessions that stay."""
    db, transaction = store.db, store.transaction
    members = f"SELECT source_id FROM session_sources WHERE session_id IN ({ids})"
    staying = f"SELECT source_id FROM session_sources WHERE session_id NOT IN ({ids})"
    whole = (
        "SELECT part_of FROM sources WHERE part_of IS NOT NULL GROUP BY part_of"
        f" HAVING sum(id IN ({members})) > 0 AND sum(id NOT IN ({members})) = 0"
    )
    outputs = (
        "SELECT r.id FROM events e JOIN sources r ON r.path = e.overflow"
        f" WHERE e.session_id IN ({ids}) AND e.overflow IS NOT NULL"
    )
    sources = [
        key
        for (key,) in db.execute(
            f"SELECT id FROM sources WHERE id IN ({members}) AND id NOT IN ({staying})"
            f" OR id IN ({whole}) OR id IN ({outputs})"
        )
    ]
    gone = ",".join(map(str, sources))
    shared = [
        path
        for (path,) in db.execute(
            f"SELECT path FROM sources WHERE id IN ({members}) AND id IN ({staying})"
            " UNION SELECT w.path FROM sources p JOIN sources w ON w.id = p.part_of"
            f" WHERE p.id IN ({members}) AND w.kind = 'document' AND w.id NOT IN ({gone or 0})"
        )
    ]
    transaction.copies.purge(f"SELECT id FROM records WHERE session_id IN ({ids})")
    transaction.flush()  # copies of these records now own what they showed
    db.execute("DELETE FROM database_rows WHERE record_id IN purged")
    for table in ("chunks", "warnings"):
        db.execute(f"DELETE FROM {table} WHERE source_id IN ({gone})")
    for table in ("usage", "leaf_titles", "session_sources"):
        db.execute(f"DELETE FROM {table} WHERE session_id IN ({ids})")
    db.execute(f"DELETE FROM events WHERE session_id IN ({ids})")
    if again:
        db.execute(f"DELETE FROM sources WHERE id IN ({gone})")
    db.execute(
        "UPDATE sources SET state = ?, state_since = ?, error = NULL, parser_state = NULL,"
        " offset = 0, lines = 0, blank_lines = 0, head_hash = NULL, tail_hash = NULL,"
        f" generation = 1 WHERE id IN ({gone})",
        (FORGOTTEN, now_ms()),
    )
    for table in ("usage_sums", "event_sums", "spans", "stale_sums", "digests", "undigested"):
        db.execute(f"DELETE FROM {table} WHERE session_id IN ({ids})")
    db.execute(f"UPDATE sessions SET parent_id = NULL WHERE parent_id IN ({ids})")
    db.execute(
        "DELETE FROM own_marks WHERE (agent, native_id, home) IN"
        f" (SELECT agent, native_id, home FROM sessions WHERE id IN ({ids}))"
    )
    db.execute(f"DELETE FROM sessions WHERE id IN ({ids})")
    sums.renew(db)
    return shared


def wipe_if_needed(db: apsw.Connection) -> None:
    """Finish what a process that was killed after the deletion has left."""
    if db.execute("SELECT 1 FROM facts WHERE name = ?", (TO_WIPE,)).get:
        _wipe(db)


def _wipe(db: apsw.Connection) -> None:
    """Deleted rows stay readable in merged words and free pages until these are rewritten."""
    db.execute("INSERT INTO event_index (event_index) VALUES ('optimize')")
    db.execute("INSERT INTO event_index (event_index, rank) VALUES ('secure-delete', 0)")
    db.execute("VACUUM")
    db.pragma("wal_checkpoint(TRUNCATE)")
    db.execute("DELETE FROM facts WHERE name = ?", (TO_WIPE,))
