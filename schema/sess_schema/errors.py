"""Errors that people see: one line that names the object, a hint, and the exit code."""

from __future__ import annotations

import errno
from enum import IntEnum

import apsw


class Exit(IntEnum):
    """Exit codes of both programs."""

    OK = 0
    NOTHING_FOUND = 1
    USAGE = 2
    NO_DAEMON = 3
    INDEX_UNUSABLE = 4
    SKIPPED_SOME = 5
    ALREADY_RUNNING = 75
    INTERRUPTED = 130


class SessError(Exception):
    """Something a person can act on."""

    def __init__(self, message: str, *, hint: str | None = None, code: int = Exit.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = int(code)


def sqlite_error(error: Exception, path: str) -> SessError:
    """What a failure of SQLite on the index means to its owner."""
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return SessError(
            f'index "{path}" is damaged: {error}',
            hint=f'keep it aside with `mv "{path}" "{path}.damaged"`, then run `sessiond sync`',
            code=Exit.INDEX_UNUSABLE,
        )
    if isinstance(error, apsw.FullError) or getattr(error, "errno", None) == errno.ENOSPC:
        return SessError(
            f'index "{path}": the disk is full',
            hint="free some space; nothing is lost, the next sync goes on where this one stopped",
            code=Exit.INDEX_UNUSABLE,
        )
    if isinstance(error, apsw.BusyError):
        return SessError(
            f'index "{path}" is locked by another program',
            hint="close whatever holds it open for writing; `sessiond status` shows our own",
            code=Exit.INDEX_UNUSABLE,
        )
    return SessError(
        f'cannot use index "{path}": {error}',
        hint="`sess doctor` looks closer",
        code=Exit.INDEX_UNUSABLE,
    )
