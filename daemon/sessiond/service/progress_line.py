"""One line on the terminal that says what long work is doing, and is gone when it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sess_schema.progress import Progress, unseen

_EVERY = 0.1  # seconds; more often only flickers
_CLEAR = "\r\x1b[K"


@contextmanager
def progress_line(*, show: bool = True) -> Iterator[Progress]:
    """On standard error, and only where a person looks at it."""
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
