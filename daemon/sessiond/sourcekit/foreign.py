"""Reads databases that other programs use, without writing to them or blocking them.

Also what the index has of their rows, and of the records of documents.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self
from urllib.parse import quote

import apsw

from sess_schema.ids import SourceId

BUSY_MS = 500
_LOG, _SHARED = "-wal", "-shm"
_SIDECARS = (_LOG, "-journal")
_NO_LOCKS = "unix-none"
_OPEN, _CLOSED, _LOG_ONLY = "readonly_shm=1", "immutable=1", f"vfs={_NO_LOCKS}"
_WAL_MARK = slice(18, 20)  # in the file's header


class ForeignError(Exception):
    """The database cannot be read now; the message gives the reason."""


class Changed(Exception):
    """A program opened the database while it was read without locks."""


class Foreign:
    """A read-only connection; each call is one short transaction."""

    def __init__(self, path: str, *, live: bool = False) -> None:
        self.path = path
        _check_readable(path)
        self._before = fingerprint(path)
        self._how = _how_to_open(path, live=live)
        self._db = self._open()
        self._tables: set[str] | None = None
        self._columns: dict[str, set[str]] = {}

    def _open(self) -> apsw.Connection:
        name = f"file:{quote(os.path.abspath(self.path))}?mode=ro&{self._how}"
        try:
            db = apsw.Connection(
                name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, statementcachesize=20
            )
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.set_busy_timeout(BUSY_MS)
            db.execute("PRAGMA query_only = ON")
            if self._how == _LOG_ONLY:
                db.execute("PRAGMA locking_mode = EXCLUSIVE")
        except apsw.Error as error:
            raise ForeignError(_reason(error)) from error
        return db

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(apsw.Error):
            self._db.close()

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Fetch all rows at once, so that no transaction outlives the call."""
        try:
            rows = list(self._db.execute(sql, tuple(values)))
        except apsw.Error as error:
            self._check()
            raise ForeignError(_reason(error)) from error
        self._check()
        return rows

    def many(self, sql: str, keys: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Fetch the rows of several keys from one snapshot."""
        rows: list[tuple[Any, ...]] = []
        try:
            with self._db:
                for key in keys:
                    rows += self._db.execute(sql, (key,))
        except apsw.Error as error:
            self._check()
            raise ForeignError(_reason(error)) from error
        self._check()
        return rows

    def has_table(self, name: str) -> bool:
        if self._tables is None:
            schema = self.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
            self._tables = {table for (table,) in schema}
        return name in self._tables

    def has(self, table: str, column: str) -> bool:
        if table not in self._columns:
            columns = self.rows("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = {name for (name,) in columns}
        return column in self._columns[table]

    def _check(self) -> None:
        if self._how == _OPEN:
            return
        opened = self._how == _LOG_ONLY and os.path.lexists(self.path + _SHARED)
        if opened or fingerprint(self.path) != self._before:
            raise Changed


def _check_readable(path: str) -> None:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise ForeignError("is not a regular file")
    except OSError as error:
        raise ForeignError((error.strerror or str(error)).lower()) from error
    if not os.access(path, os.R_OK):
        raise ForeignError("permission denied")


def _how_to_open(path: str, *, live: bool) -> str:
    """Judge by the files beside the database; `live` if it was seen changing."""
    shared = os.path.lexists(path + _SHARED)
    if _size(path + _LOG) and not shared and _NO_LOCKS in apsw.vfs_names():
        return _LOG_ONLY
    used = live or any(_size(path + suffix) for suffix in _SIDECARS)
    # A program that closed its WAL database left no `-shm` to read through.
    return _OPEN if used and (shared or not _is_wal(path)) else _CLOSED


def _is_wal(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(_WAL_MARK.stop)[_WAL_MARK] == b"\2\2"
    except OSError:
        return False


def fingerprint(path: str) -> tuple[tuple[int, ...], ...]:
    """A value that changes when a program opens or writes the database."""
    marks: list[tuple[int, ...]] = []
    for suffix in ("", *_SIDECARS):
        try:
            file = os.lstat(path + suffix)
        except OSError:
            marks.append((0,))
            continue
        marks.append((file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns))
    return tuple(marks)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _reason(error: apsw.Error) -> str:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return "is locked by another program"
    if isinstance(error, apsw.NotADBError):
        return "is not a database"
    if isinstance(error, apsw.CorruptError):
        return "is a damaged database"
    return str(error) or type(error).__name__


NO_PLACE = -1  # the place of a row whose whole conversation left the database
STALE_PLACE = -(1 << 62)  # added to the place of a row that only an older edition read


@dataclass(slots=True)
class KnownRow:
    place: int
    digest: int
    alias: str | None = None
    ts: int | None = None

    @property
    def is_stale(self) -> bool:
        """Whether only an older edition read it; its place and digest are never those of a row."""
        return self.place < NO_PLACE


class _Whole(Protocol):
    """A document or database, as a source in the index."""

    id: SourceId | None  # None until something of it is read


class KnownRows:
    """Queries `database_rows` for one database or document."""

    def __init__(self, db: apsw.Connection, whole: _Whole) -> None:
        self._db = db
        self._whole = whole

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it was ever read."""
        return self._whole.id is None

    def get(self, key: str) -> KnownRow | None:
        for row in self._db.execute(
            "SELECT place, digest, alias, ts FROM database_rows WHERE source_id = ? AND key = ?",
            (self._whole.id, key),
        ):
            return KnownRow(*row)
        return None

    def under(self, prefix: str) -> dict[str, KnownRow]:
        """All rows whose key starts with `prefix`."""
        if self._whole.id is None:
            return {}
        return {
            key: KnownRow(*rest)
            for key, *rest in self._db.execute(
                "SELECT key, place, digest, alias, ts FROM database_rows"
                " WHERE source_id = ? AND key >= ? AND key < ?",
                (self._whole.id, prefix, after(prefix)),
            )
        }

    def places(self, prefix: str) -> Iterator[tuple[str, int]]:
        """(key, place) in key order; do not write to the index until it is exhausted."""
        yield from self._db.execute(
            "SELECT key, place FROM database_rows"
            " WHERE source_id = ? AND key >= ? AND key < ? ORDER BY key",
            (self._whole.id, prefix, after(prefix)),
        )

    def in_order(self, keys: Iterable[str]) -> list[str]:
        """The stored ones of these keys, in display order."""
        return [
            key
            for (key,) in self._db.execute(
                "SELECT r.key FROM json_each(?) k CROSS JOIN database_rows r"
                " ON r.source_id = ? AND r.key = k.value"
                " JOIN records t ON t.id = r.record_id AND t.retired = 0 ORDER BY t.offset",
                (json.dumps(list(keys)), self._whole.id),
            )
        ]

    def conversations(self) -> list[str]:
        """The conversations that were present at the last read."""
        return [
            path.rpartition("#")[2]
            for (path,) in self._db.execute(
                "SELECT path FROM sources WHERE part_of = ? AND state = 'live'",
                (self._whole.id,),
            )
        ]

    def recent(self, most: int) -> list[str]:
        """The most recently changed conversations."""
        return [
            path.rpartition("#")[2]
            for (path,) in self._db.execute(
                "SELECT path FROM sources WHERE part_of = ? AND state = 'live'"
                " ORDER BY mtime_ns DESC LIMIT ?",
                (self._whole.id, most),
            )
        ]


def after(prefix: str) -> str:
    """The first string that sorts after all strings with the prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def prefix_of(conversation: str) -> str:
    """What the keys of its records start with, and those of no other conversation.

    Some ids have slashes: that of a subagent may start with that of its parent and a slash.
    """
    return conversation.replace("%", "%25").replace("/", "%2F") + "/"
