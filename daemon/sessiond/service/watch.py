"""Hints that files changed, and how often to read one that its program keeps rewriting.

Hints may be late, repeated or lost; regular walks make up for that.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import logging
import os
import re
import select
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from sessiond.reading.survey import Candidate
from sessiond.reading.tracked import WHOLES

log = logging.getLogger("sessiond.watch")

WATCHES = "sudo sysctl fs.inotify.max_user_watches=524288"
INSTANCES = "sudo sysctl fs.inotify.max_user_instances=1024"
_SHORTEST, _LONGEST = 0.3, 1.2  # seconds; new data must be searchable within two seconds
TRY_AGAIN = 60.0  # seconds until watching is retried after it failed

_MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")
# Not opening and closing: our own reads would wake us.
_WANTED: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
]


@dataclass(slots=True)
class Hints:
    paths: set[str]
    lost: bool  # events were dropped, or a directory moved: walk everything


class Watcher(FileSystemEventHandler):
    """Watches existing roots, adds new ones, and notices when events were lost."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # A queue, because a signal handler may wake us inside wait().
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._paths: set[str] = set()
        self._lost = False
        self._observer: BaseObserver | None = None
        # Roots → (device, inode), and mounts below them → (number of the mount, 0).
        self._watched: dict[str, tuple[int, int]] = {}
        self._mounts = Mounts()
        self.overflows = 0
        self.error: str | None = None
        self.fix = WATCHES  # the command to run when not everything can be watched
        self._try_again = 0.0
        self._short = False  # some directories got no watch
        self._overflow_log = _OverflowLog(self)
        logging.getLogger("watchdog").addHandler(self._overflow_log)

    def on_any_event(self, event: FileSystemEvent) -> None:
        with self._lock:
            for path in (event.src_path, event.dest_path):
                if path:
                    self._paths.add(os.fsdecode(path))
            if isinstance(event, DirMovedEvent):
                self._lost = True
        self._wake.put(None)

    def lose(self) -> None:
        """Events were dropped."""
        with self._lock:
            self._lost = True
            self.overflows += 1
        self._wake.put(None)

    def wake(self) -> None:
        self._wake.put(None)

    def wait(self, seconds: float) -> Hints:
        """The hints since the last call; return early as soon as there is one."""
        with contextlib.suppress(Empty):
            self._wake.get(timeout=seconds) if seconds > 0 else self._wake.get_nowait()
            while True:
                self._wake.get_nowait()
        with self._lock:
            hints = Hints(self._paths, self._lost)
            self._paths, self._lost = set(), False
        return hints

    def cover(self, roots: Sequence[str]) -> bool:
        """Watch the roots that exist; True if they changed and a walk is due.

        A file system that is mounted below a root hides what was watched there.
        """
        present = {}
        for root in roots:
            try:
                directory = os.stat(root)
            except OSError:
                continue
            present[root] = (directory.st_dev, directory.st_ino)
        roots = tuple(present)
        present |= self._mounts.below(roots)
        if present == self._watched and self._alive():
            return False
        self._stop_observer()
        self._watched = present
        if roots:
            self._start_observer(roots)
        return True

    def fell_short(self) -> None:
        """Not every directory is watched: retry later, the limit may have been raised."""
        if self._observer is not None and not self._short:
            self._short, self._try_again = True, time.monotonic() + TRY_AGAIN

    def _alive(self) -> bool:
        if self._short and time.monotonic() >= self._try_again:
            return False
        if self._observer is None:
            return not self._watched or time.monotonic() < self._try_again
        return self._observer.is_alive() and all(
            emitter.is_alive() for emitter in self._observer.emitters
        )

    def _start_observer(self, roots: Sequence[str]) -> None:
        self.error, self.fix, self._short = None, WATCHES, False
        try:
            self._observer = Observer()
            for root in roots:
                self._observer.schedule(self, root, recursive=True, event_filter=_WANTED)
            self._observer.start()
        except OSError as error:  # out of watches or instances: polling continues
            self.error = (error.strerror or str(error)).lower()
            self.fix = INSTANCES if error.errno == errno.EMFILE else WATCHES
            self._try_again = time.monotonic() + TRY_AGAIN
            self._stop_observer()

    def _stop_observer(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            if self._observer.is_alive():
                self._observer.join(2)
            self._observer = None

    def stop(self) -> None:
        logging.getLogger("watchdog").removeHandler(self._overflow_log)
        self._stop_observer()

    def watched_directories(self) -> int | None:
        """How many directories the kernel watches for us; None where this is unknown."""
        if not sys.platform.startswith("linux"):
            return None
        count = 0
        for info in glob.glob("/proc/self/fdinfo/*"):
            try:
                with open(info, encoding="ascii", errors="replace") as lines:
                    count += sum(line.startswith("inotify wd") for line in lines)
            except OSError:
                continue
        return count


class _OverflowLog(logging.Handler):
    """watchdog reports a queue overflow only in its log."""

    def __init__(self, watcher: Watcher) -> None:
        super().__init__(logging.WARNING)
        self._watcher = watcher

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in record.getMessage():
            self._watcher.lose()


class Mounts:
    """Reads the kernel's list when it says that the list changed."""

    def __init__(self) -> None:
        self._poll: select.poll | None = None
        self._fd = -1
        self._known: dict[str, int] = {}  # numbers of mounts, by path

    def below(self, roots: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Mounts below the roots, with their numbers: another mount has another one."""
        if self._changed():
            self._known = self._read()
        return {
            path: (number, 0)
            for path, number in self._known.items()
            if any(path.startswith(root.rstrip(os.sep) + os.sep) for root in roots)
        }

    def _changed(self) -> bool:
        if self._fd < 0:
            try:
                self._fd = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
            self._poll = select.poll()
            self._poll.register(self._fd, select.POLLPRI)
            return True
        assert self._poll is not None
        return bool(self._poll.poll(0))

    def _read(self) -> dict[str, int]:
        os.lseek(self._fd, 0, os.SEEK_SET)
        text = b""
        while data := os.read(self._fd, 1 << 16):
            text += data
        numbers = {}
        for line in text.splitlines():
            number, _parent, _device, _root, path, *_ = line.split(b" ")
            plain = _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), path)
            numbers[os.fsdecode(plain)] = int(number)
        return numbers


@dataclass(slots=True)
class _LastRead:
    at: float
    pause: float


class Pace:
    """The pause after each read doubles while the file has no new records."""

    def __init__(self) -> None:
        self._reads: dict[str, _LastRead] = {}

    def too_soon(self, path: str) -> float | None:
        """When to read again, if the last read was too recent."""
        last = self._reads.get(path)
        due = last.at + last.pause if last else 0.0
        return due if due > time.monotonic() else None

    def read(self, files: Iterable[Candidate], *, changed: bool) -> None:
        for file in files:
            if file.kind in WHOLES:
                last = self._reads.get(file.path)
                pause = min(_LONGEST, last.pause * 2) if last and not changed else _SHORTEST
                self._reads[file.path] = _LastRead(time.monotonic(), pause)

    def pause(self, path: str, otherwise: float) -> float:
        last = self._reads.get(path)
        return last.pause if last else otherwise
