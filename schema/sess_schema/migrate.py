"""Numbered SQL migrations, applied in one transaction with the record of them."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import apsw

from sess_schema import marks, sums
from sess_schema.errors import Exit, SessError

APPLICATION_ID = 0x53455353  # "SESS"
_MARKED = 2  # since then words beside other scripts are indexed
_SUMMED = 5  # since then sums are kept


@cache
def migrations() -> list[tuple[int, str, str]]:
    """(number, name, SQL) in order; released ones are never edited."""
    folder = Path(__file__).with_name("migrations")
    files = sorted(folder.glob("*.sql"))
    return [(int(file.name[:4]), file.stem, file.read_text("utf-8")) for file in files]


def latest() -> int:
    return migrations()[-1][0]


def refuse_strangers(db: apsw.Connection, path: Path) -> None:
    """Stop before touching another program's database, or one from a newer version of ours."""
    application = db.pragma("application_id")
    if application != APPLICATION_ID:
        empty = db.execute("SELECT count(*) FROM sqlite_schema").get == 0
        if application == 0 and empty:
            return
        raise SessError(
            f'"{path}" is a database of another program',
            hint="move it away, or set SESSIOND_HOME to another directory",
            code=Exit.INDEX_UNUSABLE,
        )
    version = db.pragma("user_version")
    if version > latest():
        raise SessError(
            f'index "{path}" was written by a newer sessiond '
            f"(schema {version}; this one knows {latest()})",
            hint="upgrade with `pip install --upgrade sessiond`",
            code=Exit.INDEX_UNUSABLE,
        )


def refuse_older(db: apsw.Connection, path: Path) -> None:
    """A reader cannot upgrade; the writer does at its next start."""
    version = db.pragma("user_version")
    if version < latest():
        raise SessError(
            f'index "{path}" has schema {version}; this sess needs {latest()}',
            hint="run `sessiond sync` (or `sessiond restart`), which upgrades it",
            code=Exit.INDEX_UNUSABLE,
        )


def upgrade(db: apsw.Connection) -> None:
    """Apply what is missing: the old schema or the newest one, never something between."""
    missing = [one for one in migrations() if one[0] > db.pragma("user_version")]
    if not missing:
        return
    with db:
        db.execute(
            "CREATE TABLE IF NOT EXISTS migrations ("
            "number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL"
            ") STRICT"
        )
        for number, name, sql in missing:
            db.execute(sql)
            if number == _MARKED:
                marks.mark_all(db)
            if number == _SUMMED:
                sums.settle(db)
            db.execute(
                "INSERT INTO migrations VALUES (?, ?, ?)", (number, name, int(time.time() * 1000))
            )
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", missing[-1][0])
