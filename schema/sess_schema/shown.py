"""Which events a session shows, as SQL.

A session shows the events of its records. The events of a record copied from another session are
stored there, so both sessions show them and a search finds them once.
"""

from __future__ import annotations

# `t` is the session's record, `e` an event of it.
EVENTS = "records t JOIN events e ON e.record_id = coalesce(t.copy_of, t.id)"
# Neither rewritten since, nor replaced or retracted by a later record of the same file.
CURRENT = "t.retired = 0 AND t.superseded = 0 AND e.retired = 0"
IN_ORDER = "ORDER BY t.source_id, t.offset, t.id, e.block, e.id"
# The same for several sessions: each event once, with the session that shows it.
OF_SEVERAL = (
    f"(SELECT e.id AS event, min(t.session_id) AS session_id FROM {EVENTS}"
    f" WHERE t.session_id IN ({{}}) AND {CURRENT} GROUP BY e.id)"
)
# Event ids; repeated where a session has a record twice.
IDS = f"SELECT e.id FROM {EVENTS} WHERE t.session_id = ? AND {CURRENT}"
# A session with its subagents and theirs.
FAMILY = (
    "WITH RECURSIVE family (id) AS (VALUES (?1) UNION SELECT s.id FROM sessions s"
    " JOIN family f ON s.parent_id = f.id) SELECT id FROM family"
)
