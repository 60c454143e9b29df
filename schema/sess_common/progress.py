"""Progress reports during long work on the index, so that it does not look hung."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

# Called often, with one line of text; the receiver decides how often to show it.
Progress = Callable[[str], None]

_STEPS = 50_000  # of SQLite's virtual machine: a few milliseconds, unless rows are large


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
