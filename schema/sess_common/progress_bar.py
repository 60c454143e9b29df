"""A bar on the terminal that shows how much of the transcripts is read, then disappears."""

from __future__ import annotations

import sys
from typing import Self

from sess_common.progress_line import CLEAR

FROM = 8 << 20  # bytes; less is read before anybody has looked


class Bar:
    """Draws on standard error, if that is a terminal and there is much to read."""

    def __init__(self, *, show: bool = True) -> None:
        self._show = show and sys.stderr.isatty()
        self._progress: object | None = None

    def __enter__(self) -> Self:
        return self

    def update(self, done: int, total: int) -> bool:
        """Whether it is drawn: once it was, it stays, also while nothing is known."""
        if not self._show or total < FROM:
            return self._progress is not None
        from rich.console import Console  # only when it draws
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        if self._progress is None:
            self._progress = Progress(
                "indexing",
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.add_task("indexing", total=total, completed=done)
            sys.stderr.write(CLEAR)  # words that were there before
            self._progress.start()
        assert isinstance(self._progress, Progress)
        self._progress.update(self._progress.task_ids[0], completed=done, total=total)
        return True

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()  # type: ignore[attr-defined]
