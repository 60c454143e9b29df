"""Reads databases that other programs use, without writing to them or blocking them.

A reader of a WAL database needs its `-shm` file and would create one beside a database that was
closed cleanly. Such a database is read as an immutable file, and again the usual way if it changed
meanwhile.
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
_SIDECARS = ("-wal", "-journal")


class ForeignError(Exception):
    """The database cannot be read now; the message gives the reason."""


class Changed(Exception):
    """A program opened the database while it was read as an immutable file."""


class Foreign:
    """A read-only connection; each call is one short transaction."""

    def __init__(self, path: str, *, live: bool = False) -> None:
        self.path = path
        self._plain = not live and is_closed(path)
        self._before = fingerprint(path)
        self._db = self._open()
        self._tables: set[str] | None = None

    def _open(self) -> apsw.Connection:
        try:
            if not stat.S_ISREG(os.lstat(self.path).st_mode):
                raise ForeignError("is not a regular file")
        except OSError as error:
            raise ForeignError((error.strerror or str(error)).lower()) from error
        if not os.access(self.path, os.R_OK):
            raise ForeignError("permission denied")
        options = "mode=ro&immutable=1" if self._plain else "mode=ro"
        name = f"file:{quote(os.path.abspath(self.path))}?{options}"
        try:
            db = apsw.Connection(
                name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, statementcachesize=20
            )
            db.set_busy_timeout(BUSY_MS)
            db.execute("PRAGMA query_only = ON")
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

    def _check(self) -> None:
        if self._plain and fingerprint(self.path) != self._before:
            raise Changed


def is_closed(path: str) -> bool:
    """Whether no program has the database open, judging by the files beside it."""
    return not any(_size(path + suffix) for suffix in _SIDECARS)


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
