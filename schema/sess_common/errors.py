"""User-visible errors: one line naming the object, a hint, and an exit code."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from enum import IntEnum

import apsw

REPAIR = "`sessiond stop`, then `sessiond repair`: it loses nothing that is still intact"
_SIMILAR = 0.6
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Exit(IntEnum):
    """Exit codes of both programs."""

    OK = 0
    NOTHING_FOUND = 1
    USAGE = 2
    NO_DAEMON = 3
    INDEX_UNUSABLE = 4
    SKIPPED_SOME = 5
    OVER_BUDGET = 6
    PROGRAM_FAILED = 69  # or is missing: another program, or a package that is an extra
    INTERNAL = 70
    ALREADY_RUNNING = 75
    INTERRUPTED = 130


class SessError(Exception):
    """An error the user can act on."""

    def __init__(self, message: str, *, hint: str | None = None, code: int = Exit.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = int(code)


def no_such(what: str, typed: str, names: Collection[str]) -> SessError:
    """For a value that is none of those there are."""
    import difflib  # only after a slip

    close = difflib.get_close_matches(typed.lower(), names, 1, _SIMILAR)
    meant = f"did you mean {close[0]}? " if close else ""
    return SessError(f'no such {what}: "{typed}"', hint=f"{meant}one of {', '.join(names)}")


def explained(error: Exception, index: str) -> SessError | None:
    """Any error as a user-visible one; None if it is unexpected."""
    if isinstance(error, SessError):
        return error
    if isinstance(error, apsw.Error) or getattr(error, "errno", None) in _NO_SPACE:
        return sqlite_error(error, index)
    return None


def sqlite_error(error: Exception, path: str) -> SessError:
    """An SQLite failure on the index, as a user-visible error."""
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return SessError(
            f'index "{path}" is damaged: {error}',
            hint=REPAIR,
            code=Exit.INDEX_UNUSABLE,
        )
    if _is_full(error, path):
        return SessError(
            f'index "{path}": the disk is full',
            hint="free some space; nothing is lost, the next sync continues where this one stopped",
            code=Exit.INDEX_UNUSABLE,
        )
    if isinstance(error, apsw.BusyError):
        return SessError(
            f'index "{path}" is locked by another program',
            hint="close the program that has it open; `sessiond status` shows the daemon",
            code=Exit.INDEX_UNUSABLE,
        )
    return SessError(
        f'cannot use index "{path}": {error}',
        hint="run `sess doctor`",
        code=Exit.INDEX_UNUSABLE,
    )


def caused_by_data(error: apsw.Error) -> bool:
    """Whether what was being written caused an SQL error, and not the index or the disk."""
    if isinstance(error, apsw.SQLError):
        # Also raised for a damaged schema: "no such table", "malformed database schema".
        return not str(error).startswith(("no such ", "malformed database", "near "))
    return isinstance(
        error, apsw.ConstraintError | apsw.TooBigError | apsw.MismatchError | apsw.NoMemError
    )


def _is_full(error: Exception, path: str) -> bool:
    if isinstance(error, apsw.FullError) or getattr(error, "errno", None) in _NO_SPACE:
        return True
    # Without space for its shared-memory file, SQLite reports an I/O error.
    if isinstance(error, apsw.IOError) and hasattr(os, "statvfs"):
        try:
            disk = os.statvfs(os.path.dirname(path))
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < 1 << 16
    return False
