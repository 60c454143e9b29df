"""Changes a file that another program may be writing: the old one or the new one, never neither.

The new content is written beside the file, made durable, and renamed over it. Lines that are
appended in the meantime are carried over, those that are written to the old file during the rename
included. See `LiveFile.rewrite` for the order of things.
"""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import IO

from sess_cli.edit import log
from sess_cli.edit.log import Change, Content, Edit
from sess_cli.edit.writers import writer_of
from sess_common.errors import Exit, SessError
from sess_common.program import say

Piece = tuple[int, int] | bytes  # from and to in the file as it is, or other bytes

QUIET_SECONDS = 5.0
_DRAIN_SECONDS = 2.0
_SUFFIX = ".sess-part"


class Changed(Exception):
    """The file is not what the edit was planned for."""


def reached(step: str) -> None:
    """Called at each step of an edit; tests end the process here."""


class LiveFile:
    """A file that is open for an edit."""

    def __init__(self, path: str, fd: int, name: str) -> None:
        self.path = path
        self.name = name  # a link to it, or the same
        self.fd = fd
        self.stat = os.fstat(fd)

    @property
    def size(self) -> int:
        return self.stat.st_size

    def content(self) -> Content:
        return Content(self.size, log.digest_of(self.fd, self.size))

    def rewrite(
        self, pieces: Iterable[Piece], change: Change, planned: Content | None = None
    ) -> Edit:
        """Replace the file by these pieces of it.

        `planned` is what the pieces were chosen from; lines after it are kept. Raises `Changed` if
        the file does not begin with it any more.
        """
        reached("begin")
        end = planned.size if planned else self.size
        if self.size < end or (self.size > end and not change.lines):
            raise Changed
        edit = self._entry(change)
        beside = _beside(self.path)
        try:
            beginning, before = log.take_snapshot(edit.id, self.fd, self.size, end)
            _check_same(beginning, planned or beginning)
            edit = replace(edit, before=before)
            reached("snapshot")
            with _new_file(beside) as out:
                after = _write(out, self.fd, chain(pieces, [(end, self.size)]))
                self._copy_rights(out.fileno())
                reached("written")
                edit = replace(edit, after=after)
                log.write(edit)
                reached("entered")
                carried = self._carry_over(out, before, change)
            reached("before rename")
            os.rename(beside, self.path)
        except BaseException as error:
            _take_back(edit, beside)
            if isinstance(error, OSError):
                raise _unwritable(self.path, error) from error
            raise
        reached("renamed")
        log.sync_folder(os.path.dirname(self.path))
        self._drain(carried)
        return _done(edit)

    def remove(self, change: Change) -> Edit:
        """Delete the file."""
        edit = self._entry(change)
        try:
            *_, before = log.take_snapshot(edit.id, self.fd, self.size)
            edit = replace(edit, before=before)
            log.write(edit)
            reached("entered")
            self._check_as_opened()
            os.unlink(self.path)
        except BaseException as error:
            _take_back(edit)
            if isinstance(error, OSError):
                raise _unwritable(self.path, error, "delete") from error
            raise
        if (size := os.fstat(self.fd).st_size) > before.size:  # written at the last moment
            edit = replace(edit, before=log.take_snapshot(edit.id, self.fd, size)[-1])
        log.sync_folder(os.path.dirname(self.path))
        return _done(edit)

    def _entry(self, change: Change) -> Edit:
        mode, owner = stat.S_IMODE(self.stat.st_mode), (self.stat.st_uid, self.stat.st_gid)
        return _entry(self.path, replace(change, name=change.name or self.name), mode, owner)

    def _copy_rights(self, new: int) -> None:
        _give(new, stat.S_IMODE(self.stat.st_mode), (self.stat.st_uid, self.stat.st_gid))
        if hasattr(os, "listxattr"):
            with contextlib.suppress(OSError):
                for name in os.listxattr(self.fd):
                    os.setxattr(new, name, os.getxattr(self.fd, name))

    def _carry_over(self, out: IO[bytes], before: Content, change: Change) -> int:
        """Add what was appended since; return how far the file has been read."""
        known = self.stat
        while True:
            out.flush()
            os.fsync(out.fileno())
            if (writer := writer_of(self.fd)) is not None:
                raise being_written(self.path, writer)
            found = os.fstat(self.fd)
            if not self._is_at_path() or found.st_size < known.st_size:
                raise Changed
            if _same(found, known):
                return found.st_size
            if not change.lines or not before.fits(self.fd):
                raise Changed
            out.writelines(log.pieces(self.fd, known.st_size, found.st_size))
            known = found

    def _drain(self, end: int) -> None:
        """Carry over what somebody who had just opened the old file still writes to it."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while True:
            writer = writer_of(self.fd)
            size = os.fstat(self.fd).st_size
            if size > end:
                with open(self.path, "ab") as new:
                    new.writelines(log.pieces(self.fd, end, size))
                    new.flush()
                    os.fsync(new.fileno())
                end = size
            if writer is None:
                return
            if time.monotonic() > deadline:
                say(f'warning: {writer} still has the old "{self.path}" open')
                say("hint: end it now: what it writes from now on is lost")
                return
            time.sleep(0.02)

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path, follow_symlinks=False), self.stat)
        except OSError:
            return False

    def _check_as_opened(self) -> None:
        if not self._is_at_path() or not _same(os.fstat(self.fd), self.stat):
            raise Changed


@contextmanager
def opened(path: str, *, force: bool = False) -> Iterator[LiveFile]:
    """A file to edit, after its links; `force`: even if it was written to a moment ago."""
    real = os.path.realpath(path)
    try:
        fd = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise SessError(
            f'"{path}" no longer exists',
            hint="`sess restore --in-place` writes it back from the archive",
            code=Exit.NOTHING_FOUND,
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with editing():
            live = LiveFile(real, fd, path)
            if not stat.S_ISREG(live.stat.st_mode):
                raise SessError(f'"{path}" is not a regular file')
            _check_quiet(live, force=force)
            yield live
    finally:
        os.close(fd)


def create(
    path: str,
    pieces: Iterable[bytes],
    change: Change,
    mode: int = 0o600,
    owner: tuple[int, int] | None = None,
) -> Edit:
    """Write a file that does not exist."""
    path = os.path.realpath(path)
    with editing():
        edit = _entry(path, change, mode, owner or (os.getuid(), os.getgid()))
        beside = _beside(path)
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with _new_file(beside) as out:
                edit = replace(edit, after=_write(out, -1, pieces))
                _give(out.fileno(), mode, edit.owner)
                out.flush()
                os.fsync(out.fileno())
            log.write(edit)
            _move_to_free_name(beside, path)
        except BaseException as error:
            _take_back(edit, beside)
            if isinstance(error, OSError):
                raise _unwritable(path, error) from error
            raise
        log.sync_folder(os.path.dirname(path))
        return _done(edit)


@contextmanager
def editing() -> Iterator[None]:
    """Keep others from editing; hold it around edits of many files, for speed."""
    with log.editing() as first:
        if first:
            _settle()
            log.expire()
        yield


def _settle() -> None:
    """Decide about edits that a crash interrupted: whether they happened."""
    for edit in log.begun():
        if _happened(edit):
            _done(edit)
        else:
            log.drop(edit.id)


def _happened(edit: Edit) -> bool:
    """False only if the file surely is as it was before."""
    try:
        fd = os.open(edit.path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return edit.before is not None
    except OSError:
        return True
    try:
        fitting = [one for one in (edit.before, edit.after) if one is not None and one.fits(fd)]
    finally:
        os.close(fd)
    # One may be the beginning of the other.
    return not fitting or max(fitting, key=lambda one: one.size) != edit.before


def being_written(path: str, writer: str) -> SessError:
    return SessError(
        f'"{path}" is open for writing in {writer}', hint="end that session first, then try again"
    )


def _check_quiet(live: LiveFile, *, force: bool) -> None:
    """Refuse while the agent is at work, unless the last one to write was an edit."""
    if (writer := writer_of(live.fd)) is not None:
        raise being_written(live.path, writer)
    age = time.time() - live.stat.st_mtime
    if force or not 0 <= age < QUIET_SECONDS:
        return
    last = next((edit for edit in log.entries() if edit.path == live.path), None)
    if last is None or last.left != _fingerprint(live.stat):
        raise SessError(
            f'"{live.path}" was written to {age:.0f} seconds ago',
            hint=f"wait until the agent has rested for {QUIET_SECONDS:.0f} seconds, or `--force`",
        )


def _entry(path: str, change: Change, mode: int, owner: tuple[int, int]) -> Edit:
    id_ = log.new_id()
    return Edit(
        id=id_,
        group=change.group or id_,
        ts=log.now(),
        command=change.command,
        path=path,
        session=change.session,
        agent=change.agent,
        state=log.BEGUN,
        before=None,
        after=None,
        lines=change.lines,
        mode=mode,
        owner=owner,
        undoes=change.undoes,
        cut=tuple(change.cut),
        pulled=tuple(change.pulled),
        name=change.name or path,
    )


def _done(edit: Edit) -> Edit:
    left: tuple[int, ...] = ()
    with contextlib.suppress(OSError):
        left = _fingerprint(os.stat(edit.path))
    done = replace(edit, state=log.DONE, left=left)
    with contextlib.suppress(OSError):  # on a full disk, `settle` decides later
        log.write(done)
    return done


def _take_back(edit: Edit, beside: str | None = None) -> None:
    with contextlib.suppress(OSError):
        if beside:
            os.unlink(beside)
    with contextlib.suppress(OSError):
        log.drop(edit.id)


def _beside(path: str) -> str:
    """A name for the new content, in the same directory; leftovers of crashes are removed."""
    folder, name = os.path.split(path)
    prefix = os.path.join(folder, f".{name[:100]}.")
    for old in glob.glob(f"{glob.escape(prefix)}*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            os.unlink(old)
    return f"{prefix}{os.getpid()}{_SUFFIX}"


def _new_file(path: str) -> IO[bytes]:
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _write(out: IO[bytes], fd: int, pieces: Iterable[Piece]) -> Content:
    digest, size = sha256(), 0
    for piece in pieces:
        for raw in (piece,) if isinstance(piece, bytes) else log.pieces(fd, *piece):
            out.write(raw)
            digest.update(raw)
            size += len(raw)
    return Content(size, digest.hexdigest())


def _give(fd: int, mode: int, owner: tuple[int, int]) -> None:
    found = os.fstat(fd)
    if (found.st_uid, found.st_gid) != owner:
        os.fchown(fd, *owner)
    os.fchmod(fd, mode)


def _move_to_free_name(beside: str, path: str) -> None:
    """A link fails if somebody has written the file since; a rename would overwrite it."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.rename(beside, path)
    else:
        os.unlink(beside)


def _check_same(found: Content, planned: Content) -> None:
    if found != planned:
        raise Changed


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


def _fingerprint(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _unwritable(path: str, error: OSError, what: str = "rewrite") -> SessError:
    why = (error.strerror or str(error)).lower()
    return SessError(f'cannot {what} "{path}": {why}', hint="it is as it was before")
