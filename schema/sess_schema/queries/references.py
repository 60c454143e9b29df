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
    ("records", "source_id", "sources"),
    ("records", "session_id", "sessions"),
    ("records", "copy_of", "records"),
    ("events", "session_id", "sessions"),
    ("events", "record_id", "records"),
    ("events", "result_record_id", "records"),
    ("events", "id", "event_texts"),
    ("event_texts", "id", "events"),
    ("files", "event_id", "events"),
    ("commits", "event_id", "events"),
    ("edits", "event_id", "events"),
    ("usage", "session_id", "sessions"),
    ("usage", "record_id", "records"),
    ("usage_sums", "session_id", "sessions"),
    ("event_sums", "session_id", "sessions"),
    ("spans", "session_id", "sessions"),
    ("digests", "session_id", "sessions"),
    ("leaf_titles", "session_id", "sessions"),
    ("database_rows", "record_id", "records"),
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
