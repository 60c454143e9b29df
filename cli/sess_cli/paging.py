"""Long text through a pager, as git does it: on a terminal only, and quiet when it is closed.

What is written waits in memory for the pager, not for the person who reads: a transaction that is
open meanwhile ends as soon as everything is rendered.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from sess_cli.terminal import Terminal
from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


@contextlib.contextmanager
def pager(*, wanted: bool = True) -> Iterator[Terminal]:
    """A terminal to write to: a pager, from the first line on, if stdout is a terminal."""
    command = _command() if wanted and sys.stdout.isatty() else None
    if command is None:
        yield Terminal()
        sys.stdout.flush()
        return
    paged = _Paged(command)
    try:
        yield Terminal(paged, paged=True)  # type: ignore[arg-type]
    except BrokenPipeError:
        if not paged.closed_early:
            raise
    finally:
        paged.finish()


class _Paged:
    """A stream into a pager, which is started by the first line; never blocks."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: Any = None
        self._thread: Any = None
        self._queue: Any = None
        self.closed_early = False

    def write(self, text: str) -> int:
        if self._process is None:
            self._start()
        if self.closed_early:
            raise BrokenPipeError
        self._queue.put(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True

    def _start(self) -> None:
        import queue  # only with a pager
        import subprocess
        import threading

        sys.stdout.flush()
        self._queue = queue.SimpleQueue()
        # Without R, `less` prints colour codes; without F it stays for a few lines.
        environment = {"LESS": "FRX", "LV": "-c", **os.environ}
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=environment)
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        pipe = self._process.stdin
        try:
            while (text := self._queue.get()) is not None:
                pipe.write(text.encode("utf-8", "backslashreplace"))
                if self._queue.empty():
                    pipe.flush()
        except OSError:
            self.closed_early = True
        with contextlib.suppress(OSError):
            pipe.close()

    def finish(self) -> None:
        """Wait until the person closes the pager; Ctrl-C goes to it."""
        if self._process is None:
            return
        self._queue.put(None)
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                self._process.wait()
                break


def _command() -> list[str] | None:
    """The pager to run; None for none."""
    if os.environ.get("TERM") == "dumb":
        return None
    import shlex
    from shutil import which

    try:
        words = shlex.split(chosen())
    except ValueError:
        return None
    if not words or words == ["cat"] or which(words[0]) is None:
        return None
    return words


def chosen() -> str:
    """As git chooses: our own variable, the configuration, PAGER, `less`."""
    from sess_cli import settings

    if (own := os.environ.get("SESS_PAGER")) is not None:
        return own
    if (configured := settings.read().pager) is not None:
        return configured
    return os.environ.get("PAGER", "less")
