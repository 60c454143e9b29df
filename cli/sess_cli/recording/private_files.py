"""Files that only their owner can read, and that no two processes write at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows: a single write is short, and nothing else is shared
    fcntl = None  # type: ignore[assignment, unused-ignore]

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)


def make_folder(path: str) -> None:
    """Create a folder, mode 0700, with those above it."""
    if not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def open_to_append(path: str) -> int:
    fd = os.open(path, _APPEND, 0o600)
    with contextlib.suppress(OSError):
        os.chmod(path, 0o600)  # also one that an older program made
    return fd


@contextlib.contextmanager
def locked(fd: int) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def is_at(fd: int, path: str) -> bool:
    """Whether an open file is still the one at its path."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def replace(path: str, data: bytes) -> None:
    """Write a whole file, or leave the old one."""
    beside = f"{path}.{os.getpid()}.tmp"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def sync_folder(path: str) -> None:
    """Make the name of a new file survive a power cut."""
    with contextlib.suppress(OSError):  # not every system can
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
