"""Reads databases that other programs use, without writing to them or blocking them.

A usual reader of a WAL database writes to its `-shm` file, and creates one if there is none. So how
a database is opened depends on the files beside it:

- open in a program: it is read through its `-shm`, which stays as it is;
- closed: it is read as an immutable file;
- a `-wal` without a `-shm`, as in a restored backup: SQLite can keep what would be in a `-shm` in
  memory, but only for a database that it has locked for itself; a reader cannot, so there are no
  locks at all.

Without locks nobody is kept from writing, so a database that changed meanwhile is read again.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import quote

import apsw

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
            found = list(self._db.execute(sql, tuple(values)))
        except apsw.Error as error:
            self._check()
            raise ForeignError(_reason(error)) from error
        self._check()
        return found

    def many(self, sql: str, keys: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Fetch the rows of several keys from one snapshot."""
        found: list[tuple[Any, ...]] = []
        try:
            with self._db:
                for key in keys:
                    found += self._db.execute(sql, (key,))
        except apsw.Error as error:
            self._check()
            raise ForeignError(_reason(error)) from error
        self._check()
        return found

    def has_table(self, name: str) -> bool:
        if self._tables is None:
            schema = self.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
            self._tables = {table for (table,) in schema}
        return name in self._tables

    def has(self, table: str, column: str) -> bool:
        if table not in self._columns:
            found = self.rows("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = {name for (name,) in found}
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
            found = os.lstat(path + suffix)
        except OSError:
            marks.append((0,))
            continue
        marks.append((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))
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
