"""Notes everything that a walk looks at, for the list that `sess_schema.receipt` describes.

Agents are free in how they find their places, so no list of theirs could be trusted to be
complete. For the time of the walk, the functions through which Python looks at the disk are
replaced by ones that also take notes.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Self

from sess_schema import receipt
from sessiond.reading import tail
from sessiond.reading.survey import Survey

# A directory that changed this recently may change again without another time on it.
_TOO_RECENT = 3_000_000_000


class Witness:
    """Takes notes between `with` and its end; can be entered several times."""

    def __init__(self) -> None:
        self.environ = _Environment()
        self.looked: dict[str, str] = {}
        self.relative = False  # something was looked at from the current directory
        self._resolving = False
        self._newest = 0  # of the times of directories
        self._began = time.time_ns()
        self._real: dict[tuple[Any, str], Any] = {}

    def __enter__(self) -> Self:
        stat_, lstat = os.stat, os.lstat

        def stat_noted(path: Any, *, follow_symlinks: bool = True, **named: Any) -> Any:
            if named or isinstance(path, int):
                return stat_(path, follow_symlinks=follow_symlinks, **named)
            look = stat_ if follow_symlinks else lstat
            return self._noted(look, path, follows=follow_symlinks)

        def lstat_noted(path: Any, **named: Any) -> Any:
            return lstat(path, **named) if named else self._noted(lstat, path, follows=False)

        def readlink(path: Any, *given: Any, **named: Any) -> Any:
            self._look(path, follows=False)
            return self._real[os, "readlink"](path, *given, **named)

        def realpath(path: Any, **named: Any) -> Any:
            self._resolving = True  # what else is in the directories on the way does not matter
            try:
                return self._real[os.path, "realpath"](path, **named)
            finally:
                self._resolving = False

        def listing(name: str) -> Any:
            def noted(path: Any = ".") -> Any:
                self._listed(path)
                return self._real[os, name](path)

            return noted

        def opening(owner: Any, name: str) -> Any:
            def noted(path: Any, *given: Any, **named: Any) -> Any:
                if not isinstance(path, int):
                    self._look(path, follows=False)
                    self._look(path, follows=True)
                return self._real[owner, name](path, *given, **named)

            return noted

        for owner, name, made in (
            (os, "stat", stat_noted),
            (os, "lstat", lstat_noted),
            (os, "readlink", readlink),
            (os.path, "realpath", realpath),
            (os, "scandir", listing("scandir")),
            (os, "listdir", listing("listdir")),
            (os, "open", opening(os, "open")),
            (io, "open", opening(io, "open")),
            (builtins, "open", opening(builtins, "open")),
        ):
            self._real[owner, name] = getattr(owner, name)
            setattr(owner, name, made)
        return self

    def __exit__(self, *_: object) -> None:
        for (owner, name), real in self._real.items():
            setattr(owner, name, real)
        self._real.clear()

    def found(self, seen: Survey) -> None:
        """The files of a walk: their facts come with the directory's entries."""
        for file in seen.files:
            at = file.stat
            text = f"{at.inode} {at.size} {at.mtime_ns} {at.ctime_ns} {at.dev}"
            self._note(receipt.SELF, tail.log_file(file.path), text)

    def code(self) -> None:
        """Another version may look elsewhere, and read the same bytes differently."""
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("sessiond", "sess_schema") and module.__file__:
                self._look(module.__file__, follows=True)

    def is_certain(self) -> bool:
        """Whether these notes would show every change."""
        return not self.relative and self._newest < self._began - _TOO_RECENT

    def _noted(self, look: Any, path: Any, *, follows: bool) -> Any:
        try:
            found = look(path)
        except OSError as error:
            self._note(receipt.TARGET if follows else receipt.SELF, path, receipt.missing(error))
            raise
        self._seen(path, found, follows=follows)
        return found

    def _seen(self, path: Any, found: os.stat_result, *, follows: bool) -> None:
        if self._resolving and stat.S_ISDIR(found.st_mode):  # only that it is one
            how = receipt.TARGET_IDENTITY if follows else receipt.SELF_IDENTITY
            self._note(how, path, receipt.identity(found))
        else:
            self._note(receipt.TARGET if follows else receipt.SELF, path, receipt.mark(found))

    def _look(self, path: Any, *, follows: bool) -> None:
        look = self._real.get((os, "stat" if follows else "lstat")) or (
            os.stat if follows else os.lstat
        )
        with contextlib.suppress(OSError):
            self._noted(look, path, follows=follows)

    def _listed(self, path: Any) -> None:
        if isinstance(path, int):
            self.relative = True
            return
        try:
            found = self._real[os, "stat"](path)
        except OSError as error:
            self._note(receipt.TARGET, path, receipt.missing(error))
            return
        self._newest = max(self._newest, found.st_mtime_ns, found.st_ctime_ns)
        self._note(receipt.TARGET, path, receipt.mark(found))

    def _note(self, how: str, path: Any, text: str) -> None:
        where = os.fsdecode(path)
        if not os.path.isabs(where):
            self.relative = True
        self.looked.setdefault(how + where, text)  # what was seen first is what was used


class _Environment(Mapping[str, str]):
    """The variables, and which of them were asked for."""

    def __init__(self) -> None:
        self.asked = {"HOME"}

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        self.asked.update(os.environ)
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)
