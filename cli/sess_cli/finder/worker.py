"""Background work: only the latest request counts, and a newer one stops the running one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import apsw

from sess_schema.connection import open_reader

Request = TypeVar("Request")
_STEPS = 100_000  # of SQLite's virtual machine: a few milliseconds


class Stale(Exception):
    """A newer request has arrived."""


class Latest(Generic[Request]):
    """A thread with its own reader that works on the latest request."""

    def __init__(
        self,
        index: Path,
        work: Callable[[apsw.Connection, Request], None],
        failed: Callable[[Request, Exception], None],
    ) -> None:
        self._db = open_reader(index)
        # An interrupt does not affect a statement that starts just after it.
        self._db.set_progress_handler(lambda: self.stale, _STEPS, id=self)
        self._work = work
        self._failed = failed
        self._wanted: Request | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask(self, request: Request) -> None:
        with self._changed:
            self._wanted = request
            self._db.interrupt()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._db.interrupt()
            self._changed.notify()
        self._thread.join()
        self._db.close()

    @property
    def stale(self) -> bool:
        """Whether a newer request has arrived."""
        return self._closed or self._wanted is not None

    def check(self) -> None:
        if self.stale:
            raise Stale

    def pause(self, seconds: float) -> None:
        """Wait, unless a newer request arrives."""
        with self._changed:
            self._changed.wait_for(lambda: self.stale, seconds)
        self.check()

    def _run(self) -> None:
        while (request := self._next()) is not None:
            try:
                with self._db:  # all reads see the same state of the index
                    self._work(self._db, request)
            except Stale:
                pass
            except apsw.InterruptError:
                self._put_back(request)
            except Exception as error:
                self._failed(request, error)

    def _next(self) -> Request | None:
        with self._changed:
            self._changed.wait_for(lambda: self.stale)
            request, self._wanted = self._wanted, None
            return None if self._closed else request

    def _put_back(self, request: Request) -> None:
        """An interrupt meant for the previous request may hit this one at its start."""
        with self._changed:
            if self._wanted is None:
                self._wanted = request
