"""Groups steps into transactions, and finds the file to blame when one fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from sess_schema.errors import caused_by_data
from sess_schema.ground import GroundLost, Overtaken
from sessiond.engines.steps import Fail, Finish, Step, Vanish
from sessiond.reading import tail
from sessiond.writing.transaction import Store

COMMIT_BYTES = 32 << 20
COMMIT_SECONDS = 2.0


class Stopped(Exception):
    """The daemon must stop in the middle of a file that is read in one transaction."""


class SourceCrash(Exception):
    """Writing one source failed; the others continue without it."""

    def __init__(self, step: Step, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.step = step
        # A file that changed while we read it is not broken, and neither is the parser.
        self.raced = isinstance(error, FileNotFoundError | tail.Unreadable)


class UnknownCulprit(Exception):
    """The commit of several sources failed because of the data of one of them."""


class Batch:
    """The open transaction and the steps in it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.alone = False  # each source gets its own transaction, to find the one that fails
        self._started = 0.0
        self._bytes = 0
        self._last: Step | None = None
        self._mixed = False  # it has steps of several files

    @contextmanager
    def step(self, step: Step) -> Iterator[None]:
        """Write a step in the open transaction, or in a new one."""
        if not self._started:
            self._store.begin()
            self._started = time.monotonic()
            self._bytes, self._mixed = 0, False
        elif self._last is not None and step.file.path != self._last.file.path:
            self._mixed = True
        self._last = Step(step.file, step.source)
        try:
            yield
        except Stopped:
            raise
        except Exception as error:
            if _of_the_index(error):
                raise
            raise SourceCrash(self._last, error) from error
        self._bytes += step.weight

    def is_due(self, step: Step) -> bool:
        late = time.monotonic() - self._started > COMMIT_SECONDS
        ends = self.alone and isinstance(step, Finish | Fail | Vanish)
        return late or ends or self._bytes > COMMIT_BYTES

    def commit(self) -> None:
        if not self._started:
            return
        assert self._last is not None
        try:
            self._store.commit()
        except Exception as error:
            if _of_the_index(error):
                raise
            if self._mixed:
                raise UnknownCulprit from error
            raise SourceCrash(self._last, error) from error
        self._started = 0.0

    def roll_back(self) -> None:
        self._started = 0.0
        self._store.roll_back()


def _of_the_index(error: Exception) -> bool:
    if isinstance(error, apsw.Error):
        return not caused_by_data(error)
    return isinstance(error, GroundLost | Overtaken)
