"""References between rows, and a check that none is dangling.

Tables that a pass fills by the hundred thousand rows have no foreign keys. SQLite would look up the
parent of every row, and it cannot add a key to an existing table: an upgrade would have to copy
the index. One writer fills them, a transaction at a time; `sess doctor` and the tests use this
check instead.
"""

from __future__ import annotations

import apsw

# (table, column, referenced table); NULL refers to nothing.
REFERENCES = (
    ("turns", "source_id", "sources"),
    ("turns", "session_id", "sessions"),
    ("turns", "copy_of", "turns"),
    ("events", "session_id", "sessions"),
    ("events", "turn_id", "turns"),
    ("events", "result_turn_id", "turns"),
    ("events", "id", "event_texts"),
    ("event_texts", "id", "events"),
    ("files", "event_id", "events"),
    ("commits", "event_id", "events"),
    ("edits", "event_id", "events"),
    ("usage", "session_id", "sessions"),
    ("usage", "turn_id", "turns"),
    ("usage_sums", "session_id", "sessions"),
    ("event_sums", "session_id", "sessions"),
    ("spans", "session_id", "sessions"),
    ("digests", "session_id", "sessions"),
    ("leaf_titles", "session_id", "sessions"),
    ("database_rows", "turn_id", "turns"),
)


def broken(db: apsw.Connection) -> list[str]:
    """One line for each kind of dangling reference, including foreign keys."""
    found = [
        f"{count:,} of {table}.{column} are not in {parent}"
        for table, column, parent in REFERENCES
        if (
            count := db.execute(
                f"SELECT count(*) FROM {table} c WHERE c.{column} IS NOT NULL"
                f" AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = c.{column})"
            ).get
        )
    ]
    enforced = db.execute(
        'SELECT "table", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2'
    )
    return found + [
        f"{count:,} of {table} are not in {parent}" for table, parent, count in enforced
    ]
