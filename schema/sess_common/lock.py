"""The kernel lock held by a running writer; it ends with its process."""

from __future__ import annotations

import contextlib
import os
import stat
import time

from sess_common import receipt
from sess_common.classes import TYPE_CHECKING
from sess_common.errors import Exit, SessError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

try:
    import fcntl
except ImportError:  # Windows has no flock; msvcrt locks a byte range instead
    import msvcrt

    def _try_lock(fd: int, *, shared: bool = False) -> bool:
        try:
            os.lseek(fd, 1 << 20, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        except OSError:
            return False
        return True
else:

    def _try_lock(fd: int, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


_NO_LINK, _NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
_DESCRIBING_SECONDS = 0.5  # who has just taken the lock is about to say what for
ASKING_SECONDS = 0.1  # asking for the holder takes the lock for some microseconds


class WriterLock:
    """Held by the only process that may write to the index."""

    def __init__(self, fd: int, path: str | Path) -> None:
        self._fd = fd
        self.path = path

    def is_at_its_path(self) -> bool:
        """Whether others still see this lock: a new file at its path is another, free one."""
        return _is_at(self._fd, self.path)

    def describe(self, **facts: Any) -> None:
        """Record who holds the lock, for others to read."""
        import json

        text = json.dumps({"pid": os.getpid(), **facts}).encode()
        with contextlib.suppress(OSError):  # on a full disk the lock alone must do
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.write(self._fd, text)

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
        os.close(self._fd)


def acquire(path: str | Path, *, wait: float = 0.0) -> WriterLock | None:
    """The lock, or None if another process still holds it after `wait` seconds."""
    deadline = time.monotonic() + max(wait, ASKING_SECONDS)
    while True:
        fd = _opened(path)
        if _try_lock(fd) and _is_at(fd, path):  # not removed between the two
            break
        os.close(fd)
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.02)
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)  # the description left by a killed holder
    receipt.remove(os.fspath(path))
    return WriterLock(fd, path)


def _opened(path: str | Path) -> int:
    """The lock file; never one that somebody planted: a link, a pipe, another user's file."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK | _NO_WAIT, 0o600)
    except OSError as error:
        if os.path.islink(path):
            raise _not_ours(path, "is a symbolic link") from error
        raise
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and _is_ours(found):
        return fd
    os.close(fd)
    raise _not_ours(path, "is not a file of yours")


def _is_ours(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()


def _not_ours(path: str | Path, why: str) -> SessError:
    return SessError(f'"{path}" {why}', hint="remove it", code=Exit.INDEX_UNUSABLE)


def _is_at(fd: int, path: str | Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def is_held(path: str | Path) -> bool:
    """Whether a writer runs."""
    return _read(path) is not None


def holder(path: str | Path) -> dict[str, Any] | None:
    """The description of the lock's holder, or None if nobody holds it."""
    import json

    description, patience = _read(path), time.monotonic() + _DESCRIBING_SECONDS
    while description == b"" and time.monotonic() < patience:
        time.sleep(0.01)
        description = _read(path)
    if description is None:
        return None
    try:
        facts: dict[str, Any] = json.loads(description or b"{}")
    except ValueError:
        return {}
    return facts


def daemon_runs(path: str | Path) -> bool:
    """Whether the holder is a daemon, and no passing command."""
    return (holder(path) or {}).get("mode") == "daemon"


def _read(path: str | Path) -> bytes | None:
    """What the holder wrote into the lock; None if nobody holds it."""
    try:
        fd = os.open(path, os.O_RDWR | _NO_LINK)
    except OSError:
        return None
    try:
        if _try_lock(fd, shared=True):  # others asking at the same time are not holders
            return None
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def already_running(path: str | Path) -> SessError:
    """The error for an index that another process is writing to."""
    other = holder(path) or {}
    what = "a sync" if other.get("mode") == "sync" else "a daemon"
    return SessError(
        f"{what} is already running (pid {other.get('pid', 'unknown')})",
        hint="it updates the index; `sessiond status` shows its progress",
        code=Exit.ALREADY_RUNNING,
    )
