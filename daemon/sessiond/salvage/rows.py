"""Copies the rows of a damaged index that are on sound pages, with the ids that they have.

Where rows are lost, logs are read again from the archive afterwards. Of conversations in documents
and databases the archive has only the records, not what stood beside them; their rows are all there
is. SQLite reads them through a file whose every page was compared with its checksum.
"""

# ruff: noqa: N802 - SQLite names the methods of a file

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import apsw

from sess_common import receipt
from sess_schema import page_sums
from sess_schema.backups import VirtualFile, VirtualFiles
from sessiond.salvage.pages import Pages

_HEADER = 100
_WRITTEN, _COUNT, _FREE, _VALID = slice(18, 20), slice(28, 32), slice(32, 40), slice(92, 96)
_CHANGED = slice(24, 28)
_MADE_ANEW = frozenset(
    {
        *("migrations", "usage_sums", "event_sums", "spans", "stale_sums"),
        *("digests", "undigested"),
    }
)
_FARTHEST = 1 << 62


def copy(db: apsw.Connection, file: str) -> set[str] | None:
    """Copy all rows that can be read; the tables that lack some. None: it is no such index."""
    damaged: set[str] = set()
    with _opened(file, db) as old:
        if old is None or _schema(old) != _schema(db):
            return None
        db.pragma("foreign_keys", 0)  # what refers to lost rows is removed later
        with db:
            for table in _tables(db):
                if not _copy_table(db, old, table):
                    damaged.add(table)
            db.execute("DELETE FROM facts WHERE name = ?", (receipt.FACT,))
            db.execute("INSERT INTO undigested SELECT id FROM sessions")
            db.execute("INSERT INTO event_index (event_index) VALUES ('rebuild')")
        db.pragma("foreign_keys", 1)
    return damaged


def drop_orphans(db: apsw.Connection) -> None:
    """Remove what refers to a session or file whose row is lost: a new one may get its number."""
    db.execute(
        "UPDATE sessions SET parent_id = NULL WHERE parent_id NOT IN (SELECT id FROM sessions)"
    )
    db.execute("UPDATE sources SET part_of = NULL WHERE part_of NOT IN (SELECT id FROM sources)")
    db.execute("DELETE FROM session_sources WHERE session_id NOT IN (SELECT id FROM sessions)")
    for table in ("session_sources", "chunks", "warnings", "database_rows"):
        db.execute(f"DELETE FROM {table} WHERE source_id NOT IN (SELECT id FROM sources)")
    # To read a log again takes back what it had told of its sessions, so all must be known.
    db.execute(
        "INSERT OR IGNORE INTO session_sources SELECT DISTINCT session_id, source_id FROM records"
        " WHERE session_id IN (SELECT id FROM sessions) AND source_id IN (SELECT id FROM sources)"
    )


def _tables(db: apsw.Connection) -> list[str]:
    names = db.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT GLOB 'sqlite_*'"
    )
    return sorted({str(name) for (name,) in names} - _MADE_ANEW)


def _schema(db: apsw.Connection) -> list[Any]:
    try:
        return sorted(db.execute("SELECT type, name, sql FROM sqlite_schema"), key=repr)
    except (apsw.Error, UnicodeDecodeError):
        return []


def _copy_table(db: apsw.Connection, old: apsw.Connection, table: str) -> bool:
    """Whether every row of it was there."""
    columns = [
        str(name) for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))
    ]
    keyed = db.execute("SELECT wr FROM pragma_table_list WHERE name = ?", (table,)).get
    insert = f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(columns))})"
    whole = True
    for rows in _runs(old, table) if not keyed else _both_ends(old, table):
        try:
            db.executemany(insert, rows)
        except (apsw.CorruptError, apsw.IOError):
            whole = False
    return whole


def _runs(old: apsw.Connection, table: str) -> Iterator[Iterator[Any]]:
    """The rows before, between and behind those that cannot be read."""
    reached = [-_FARTHEST]

    def rows(start: int) -> Iterator[Any]:
        for key, *row in old.execute(
            f"SELECT rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid", (start,)
        ):
            yield row
            reached[0] = key

    start: int | None = -_FARTHEST
    while start is not None:
        reached[0] = start
        yield rows(start)
        start = _next_readable(old, table, reached[0])


def _next_readable(old: apsw.Connection, table: str, after: int) -> int | None:
    """Where rows can be read again; None: there are no more."""
    step = 1
    first = f"SELECT rowid FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 1"
    low = max(after, 0)
    while low + step < _FARTHEST:
        try:
            found = old.execute(first, (low + step,)).get
        except (apsw.CorruptError, apsw.IOError):
            step *= 2
            continue
        if found is None and step == 1:
            return None
        return _nearest(old, first, low, low + step) if step > 1 else low + step
    return None


def _nearest(old: apsw.Connection, first: str, bad: int, good: int) -> int:
    while good - bad > 1:
        middle = (bad + good) // 2
        try:
            old.execute(first, (middle,)).fetchall()
            good = middle
        except (apsw.CorruptError, apsw.IOError):
            bad = middle
    return good


def _both_ends(old: apsw.Connection, table: str) -> Iterator[Iterator[Any]]:
    """The rows of a table without rowids from its beginning, and from its end."""
    key = ", ".join(
        str(name)
        for (name,) in old.execute(
            "SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,)
        )
    )
    backward = ", ".join(f"{name} DESC" for name in key.split(", "))
    for order in (key, backward):
        yield _read(old, f"SELECT * FROM {table} ORDER BY {order}")


def _read(old: apsw.Connection, query: str) -> Iterator[Any]:
    """Not before it is asked for: the first row may be damaged, too."""
    yield from old.execute(query)


# -- the damaged index, as a file without a log


@contextmanager
def _opened(file: str, like: apsw.Connection) -> Iterator[apsw.Connection | None]:
    pages = Pages(file)
    vfs = VirtualFiles(f"sess-salvage-{os.getpid()}-{id(pages)}", _SoundPages(pages, like))
    try:
        flags = apsw.SQLITE_OPEN_READONLY
        with closing(apsw.Connection("damaged", flags, vfs=vfs.vfs_name)) as db:
            yield db if pages.summed else None
    finally:
        vfs.unregister()
        pages.close()


class _SoundPages(VirtualFile):
    """Every page, or an error where one is not what was written."""

    def __init__(self, pages: Pages, like: apsw.Connection) -> None:
        self._pages = pages
        raw = pages.page(1)
        head = bytearray(raw if pages.is_sound(1) else _head_of(like) + raw[_HEADER:])
        head[_WRITTEN] = b"\1\1"  # no log: the pages that are in it are taken from there
        head[_COUNT] = pages.count.to_bytes(4, "big")
        head[_VALID] = head[_CHANGED]
        if not pages.is_sound(1):
            head[_FREE] = bytes(8)
        self._first = bytes(head)

    def xRead(self, amount: int, offset: int) -> bytes:
        size = self._pages.size
        number, inside = offset // size + 1, offset % size
        if number > self._pages.count:
            return b""
        if number == 1:
            return self._first[inside : inside + amount]
        if not self._pages.is_sound(number):
            raise apsw.CorruptError(f"page {number} is damaged")
        return self._pages.page(number)[inside : inside + amount]

    def xFileSize(self) -> int:
        return self._pages.count * self._pages.size


def _head_of(db: apsw.Connection) -> bytes:
    """The header of an index of today."""
    db.wal_checkpoint()
    return page_sums.head_of(db.filename)
