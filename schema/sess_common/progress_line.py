"""One line on the terminal that shows the progress of long work, then disappears."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sess_common.progress import Progress, unseen

_EVERY = 0.1  # seconds; more often would flicker
CLEAR = "\r\x1b[K"


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
            sys.stderr.write(f"{CLEAR}{text} ...")
            sys.stderr.flush()

    try:
        yield draw
    finally:
        if shown:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
