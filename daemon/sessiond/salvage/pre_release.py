"""Copies the rows of an index from before the first release, which has nearly today's tables.

If a column of today was not there then, logs are marked to be read again from the archive;
conversations of documents and databases that are gone stay what was read of them. The file is only
read.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from sess_schema import migrate, soundness, sums

_LAST = 10  # the version of its tables; indexes of earlier ones are searched page by page
# What a table or column of today was called.
_THEN = {"records": "turns", "record_id": "turn_id", "result_record_id": "result_turn_id"}
_MADE_ANEW = frozenset(
    {
        *("migrations", "facts", "usage_sums", "event_sums", "spans", "stale_sums"),
        *("digests", "undigested"),
        "own_marks",  # nobody could set them
    }
)
# Only sources set them whose edition has grown since, so that their logs are read again anyway.
_OF_LATER_EDITIONS = frozenset({"sum_of"})
_FACTS = ("masked_at_ingest", "accepted_losses")


def is_sound(file: str) -> bool:
    """Whether it is such an index, with intact pages."""
    try:
        with closing(_opened(file)) as old:
            version = old.pragma("application_id"), old.pragma("user_version")
            return version == (migrate.PRE_RELEASE_ID, _LAST) and not soundness.structure(
                old, deep=False
            )
    except apsw.Error:
        return False


def copy(db: apsw.Connection, file: str) -> int | None:
    """Copy everything into an index that has nothing yet; how many sessions. None if it has."""
    if db.execute("SELECT 1 FROM sources").get is not None:
        return None
    with closing(_opened(file)) as old, db:
        _copy_rows(db, old)
    return int(db.execute("SELECT count(*) FROM sessions WHERE records > 0").get)


def _opened(file: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{Path(file).resolve().as_uri()}?mode=ro", flags)


def _copy_rows(db: apsw.Connection, old: apsw.Connection) -> None:
    db.pragma("defer_foreign_keys", 1)
    tables = db.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT GLOB 'sqlite_*'"
    ).fetchall()
    names = sorted({str(name) for (name,) in tables} - _MADE_ANEW)
    whole = [_copy_table(db, old, name) for name in names]
    if not all(whole):
        db.execute("UPDATE sources SET edition = 0 WHERE part_of IS NULL")
    db.executemany(
        "INSERT OR IGNORE INTO facts (name, value) VALUES (?, ?)",
        old.execute("SELECT name, value FROM facts WHERE name IN (?, ?)", _FACTS),
    )
    db.execute("INSERT INTO undigested SELECT id FROM sessions")
    db.execute("INSERT INTO event_index (event_index) VALUES ('rebuild')")
    sums.renew_all(db)


def _copy_table(db: apsw.Connection, old: apsw.Connection, table: str) -> bool:
    """Whether all columns were there; others keep their defaults."""
    then = _THEN.get(table, table)
    today, known = _columns(db, table), _columns(old, then)
    both = [name for name in today if _THEN.get(name, name) in known]
    if both:
        places = ", ".join("?" * len(both))
        db.executemany(
            f"INSERT INTO {table} ({', '.join(both)}) VALUES ({places})",
            old.execute(f"SELECT {', '.join(_THEN.get(name, name) for name in both)} FROM {then}"),
        )
    return {*today} - {*both} <= _OF_LATER_EDITIONS


def _columns(db: apsw.Connection, table: str) -> list[str]:
    rows = db.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return [str(name) for (name,) in rows]
