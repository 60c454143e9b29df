"""Notices when the files under a running writer are taken away or replaced.

SQLite would go on writing to files that nobody can open any more, and a second writer would take
a new lock file for a free one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from sess_common.errors import Exit, SessError
from sess_common.lock import WriterLock
from sess_common.paths import create_private_file

Identity = tuple[int, int] | None


class GroundLost(SessError):
    """What was opened is no longer what its path names: nothing more must be written."""


class Overtaken(SessError):
    """Another process read a source further meanwhile; what was read here would double it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f'another process has written "{path}" to the index',
            hint="only one daemon may run; `sessiond status` shows it",
            code=Exit.INDEX_UNUSABLE,
        )


class Ground:
    """The lock, the index and its WAL as they were when writing began."""

    def __init__(self, db: apsw.Connection, index: Path, held: WriterLock) -> None:
        self._db = db
        self._held = held
        self._index, self._wal = index, index.with_name(index.name + "-wal")
        self._index_was = _identity(self._index)
        self._wal_was: Identity = None
        db.set_commit_hook(self.check)

    def check(self) -> bool:
        """Raise `GroundLost` if something is missing; a few stats."""
        if not self._held.is_at_its_path():
            raise _lost(f'lock "{self._held.path}" was removed: another daemon may be writing')
        if _identity(self._index) != self._index_was:
            raise _lost(f'index "{self._index}" was removed or replaced while it was in use')
        wal = _identity(self._wal)
        self._wal_was = self._wal_was or wal
        if wal != self._wal_was:
            raise _lost(f'"{self._wal}" was removed or replaced while it was in use')
        return False  # for SQLite: do commit

    def leave(self) -> Path | None:
        """Save what only this connection can still read."""
        self._db.set_commit_hook(None)
        if _identity(self._index) == self._index_was:
            if self._held.is_at_its_path():  # only the WAL is gone, and nobody else writes
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            return None
        saved = self._index.with_name(time.strftime("saved-%Y%m%d-%H%M%S.db", time.gmtime()))
        create_private_file(saved)
        try:
            self._db.execute("VACUUM INTO ?", (os.fspath(saved),))
        except apsw.Error:
            saved.unlink()
            raise
        return saved


@contextmanager
def standing_on(db: apsw.Connection, index: Path, held: WriterLock) -> Iterator[Ground]:
    """Write only as long as the lock and the index are where they were."""
    ground = Ground(db, index, held)
    try:
        yield ground
        ground.check()
        db.set_commit_hook(None)
    except GroundLost as lost:
        try:
            saved = ground.leave()
        except (apsw.Error, OSError) as error:
            lost.message += f"; it cannot be saved: {error}"
            raise lost from error
        if saved is not None:
            lost.message += f'; its content was saved as "{saved}"'
            lost.hint = f'`sessiond salvage "{saved}"` loads it into a new index'
        raise


def _lost(message: str) -> GroundLost:
    return GroundLost(
        message,
        hint="start it again, and leave the files in its directory alone while it runs",
        code=Exit.INDEX_UNUSABLE,
    )


def _identity(path: Path) -> Identity:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
