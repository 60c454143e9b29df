"""A disk that fails, or kills its user, at a chosen call; and programs that run on it.

SQLite's calls go through a VFS. What programs do to files themselves (create, rename, link, delete)
is seen by an audit hook, only in a process of its own, because a hook cannot be taken out again.
"""

from __future__ import annotations

import errno
import mmap
import os
import signal
import sys
import tempfile
import time
import traceback
from functools import cache
from typing import NamedTuple

import apsw
from tests import at_length, forked

from sess_schema import page_sums

WRITES = frozenset({"write", "sync", "truncate"})
READS = frozenset({"read"})
FILES = frozenset({"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.truncate"})
KILL = "kill -9"
_TAKES_SPACE = frozenset({"write", "open", "os.link", "os.mkdir"})


class Trouble:
    """What happens at call number `at` of the given kinds; the count is shared with children."""

    def __init__(self, what=None, at=0, calls=WRITES) -> None:
        self.what, self.at, self.kinds = what, at, calls
        self._shared = memoryview(mmap.mmap(-1, 16)).cast("Q")

    @property
    def calls(self) -> int:
        return self._shared[0]

    @property
    def struck(self) -> bool:
        return bool(self._shared[1])

    def mend(self) -> None:
        self.what = None

    def touch(self, call: str) -> None:
        if call not in self.kinds:
            return
        self._shared[0] += 1
        if self.what is None:
            return
        if self.what is apsw.FullError:  # a full disk stays full until someone frees space
            strikes = self.calls >= self.at and call in _TAKES_SPACE
        else:
            strikes = self.calls == self.at
        if strikes:
            self._shared[1] = 1
            if self.what == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            if call in FILES:
                full = self.what is apsw.FullError
                raise OSError(errno.ENOSPC if full else errno.EIO, "injected")
            raise self.what("injected")

    def __enter__(self):
        self._vfs = _Disk(self)
        return self

    def __exit__(self, *_):
        take_out(self._vfs)
        if self.struck and self.what != KILL:
            at_length.count("faults")


def take_out(vfs):
    """The default again is what it was; what stands on the file system goes first."""
    above = page_sums.known.pop(vfs.name, None)
    if above is not None:
        above.unregister()
    vfs.unregister()


class _Disk(apsw.VFS):
    def __init__(self, trouble) -> None:
        self.trouble = trouble
        self.base = apsw.vfs_names()[0]
        self.name = "failing-disk"
        super().__init__(self.name, self.base, makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
        return _File(self, name, flags)


class ShimFile(apsw.VFSFile):
    """A file of the ordinary file system."""

    def __init__(self, base, name, flags) -> None:
        super().__init__(base, name, flags)
        self._read_only = bool(flags[1] & apsw.SQLITE_OPEN_READONLY)

    def xLock(self, level):  # noqa: N802
        # A reader that closes tries this in vain; SQLite ignores it, but apsw would raise it.
        if self._read_only and level == apsw.SQLITE_LOCK_EXCLUSIVE:
            raise apsw.BusyError("opened for reading")
        super().xLock(level)


class _File(ShimFile):
    def __init__(self, disk, name, flags) -> None:
        self._touch = disk.trouble.touch
        super().__init__(disk.base, name, flags)

    def xRead(self, amount, offset):  # noqa: N802
        self._touch("read")
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):  # noqa: N802
        self._touch("write")
        super().xWrite(data, offset)

    def xSync(self, _flags):  # noqa: N802
        self._touch("sync")  # no real sync, which is slow: the power stays on

    def xTruncate(self, size):  # noqa: N802
        self._touch("truncate")
        super().xTruncate(size)


class Ended(NamedTuple):
    code: int  # negative: the signal that ended it
    stdout: str
    stderr: str


def run(world, trouble, program, *arguments):
    """`sess` or `sessiond` on this disk, in a process of its own."""

    def work():
        sys.argv[:] = [program, *map(str, arguments)]
        return forked._code_of(program)

    return in_child(world, trouble, work)


def in_child(world, trouble, work) -> Ended:
    """A function on this disk, in a process of its own; its result is the exit code."""
    _import_once()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _become(world, trouble, work, [out, err])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told = []
        for file in (out, err):
            file.seek(0)
            told.append(file.read().decode("utf-8", "replace"))
    if trouble.struck:
        at_length.count("kills" if code == -signal.SIGKILL else "faults")
    return Ended(code, *told)


@cache
def _import_once():
    """Before the fork, so that not every child has to."""
    forked._import_programs()


def _become(world, trouble, work, streams):
    code = 70
    try:
        with open(os.devnull, "rb") as nothing:
            for number, stream in enumerate([nothing, *streams]):
                os.dup2(stream.fileno(), number)
        os.environ.clear()
        os.environ.update(world.env)
        time.tzset()
        forked._open_streams()
        sys.addaudithook(lambda event, values: _audit(trouble, str(world.root), event, values))
        vfs = _Disk(trouble)  # lives as long as the process
        assert vfs is not None
        code = work()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _audit(trouble, root, event, values):
    """Changes of files below the home count as calls."""
    if event not in FILES or not str(values[0]).startswith(root):
        return
    if event == "open" and not values[2] & (os.O_WRONLY | os.O_RDWR):
        return
    trouble.touch(event)
