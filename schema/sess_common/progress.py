"""Progress of long work: a line or a bar on the terminal, so that it does not look hung."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

# Called often, with one line of text; the receiver decides how often to show it.
Progress = Callable[[str], None]

_STEPS = 50_000  # of SQLite's virtual machine: a few milliseconds, unless rows are large
_EVERY = 0.1  # seconds between two lines; more often would flicker
_CLEAR = "\r\x1b[K"
_BAR_FROM = 8 << 20  # bytes; less is read before anybody has looked


def unseen(_text: str) -> None:
    """Ignores progress."""


@contextmanager
def while_running(db: apsw.Connection, progress: Progress, text: str) -> Iterator[None]:
    """Report `text` now, and repeatedly while statements run."""

    def report() -> bool:
        progress(text)
        return False  # True would interrupt the statement

    progress(text)
    key = object()
    db.set_progress_handler(report, _STEPS, id=key)
    try:
        yield
    finally:
        db.set_progress_handler(None, id=key)


@contextmanager
def progress_line(*, show: bool = True) -> Iterator[Progress]:
    """Show it on standard error, and only on a terminal."""
    if not show or not sys.stderr.isatty():
        yield unseen
        return
    shown = 0.0

    def draw(text: str) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _EVERY:
            shown = time.monotonic()
            sys.stderr.write(f"{_CLEAR}{text} ...")
            sys.stderr.flush()

    try:
        yield draw
    finally:
        if shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


class Bar:
    """How much of the transcripts is read, if there is much; only on a terminal."""

    def __init__(self, *, show: bool = True) -> None:
        self._show = show and sys.stderr.isatty()
        self._progress: object | None = None

    def __enter__(self) -> Self:
        return self

    def update(self, done: int, total: int) -> bool:
        """Whether it is drawn: once it was, it stays, also while nothing is known."""
        if not self._show or total < _BAR_FROM:
            return self._progress is not None
        from rich.console import Console  # only when it draws
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as Columns

        if self._progress is None:
            self._progress = Columns(
                "indexing",
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.add_task("indexing", total=total, completed=done)
            sys.stderr.write(_CLEAR)  # words that were there before
            self._progress.start()
        assert isinstance(self._progress, Columns)
        self._progress.update(self._progress.task_ids[0], completed=done, total=total)
        return True

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()  # type: ignore[attr-defined]
