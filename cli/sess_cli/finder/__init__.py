"""The finder: `sess` without arguments on a terminal."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sess_common.errors import Exit, SessError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sess_cli.finder.app import Finder


def has_screen() -> bool:
    """Whether the standard streams are a terminal that can be drawn on."""
    return os.isatty(0) and os.isatty(1) and os.environ.get("TERM") != "dumb"


def start(*, print_id: bool = False, print_command: bool = False) -> int:
    """Update the index and open the finder; returns an exit code."""
    from sess_cli import fresh  # not to answer `has_screen`
    from sess_common import paths

    with fresh.open_with_sessions():
        pass
    index = paths.home().index
    if print_id or print_command:
        return print_chosen(index, command=print_command)
    return run(index)


def run(index_path: Path, *, utc: bool = False) -> int:
    """Open the finder; returns an exit code, or becomes the agent whose session is resumed."""
    from sess_cli.resuming import Resume  # nothing of Textual before `load`

    finder = load()(index_path, utc=utc)
    resume = finder.run()
    if isinstance(resume, Resume):
        resume.replace_this_process()
    return finder.return_code or 0


def print_chosen(index_path: Path, *, command: bool = False) -> int:
    """Print the ID of the session, or the command, that is chosen in the finder: nothing else."""
    with _streams_on_terminal():
        finder = load()(index_path, choosing="command" if command else "session")
        chosen = finder.run()
    if finder.return_code:
        return finder.return_code
    if chosen is None:
        return Exit.NOTHING_FOUND
    print(chosen)
    return Exit.OK


@contextmanager
def _streams_on_terminal() -> Iterator[None]:
    """The screen is drawn on the terminal wherever the standard streams lead."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        raise _no_terminal() from None
    if os.environ.get("TERM") == "dumb":
        os.close(terminal)
        raise _no_terminal()
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(stream) for stream in range(3)]
    for stream in range(3):
        os.dup2(terminal, stream)
    os.close(terminal)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, before in enumerate(kept):
            os.dup2(before, stream)
            os.close(before)


def _no_terminal() -> SessError:
    return SessError(
        "--print-id needs a terminal to choose on",
        hint="`sess search --ids WORDS` and `sess list --json` need none",
    )


def load() -> type[Finder]:
    """Import the finder, set up so that a keystroke waits only for its results."""
    chosen = os.environ.get("TEXTUAL_FPS")
    # Textual's default of 60 frames per second would delay drawing by up to 16 ms.
    os.environ["TEXTUAL_FPS"] = chosen or "250"
    # Garbage is collected while nobody types: it takes up to 50 ms.
    gc.disable()
    from sess_cli.finder.app import Finder  # takes longer than most commands

    if chosen is None:  # child processes should not inherit it
        del os.environ["TEXTUAL_FPS"]
    # Lets the screen thread run soon even if another thread is busy.
    sys.setswitchinterval(0.001)
    gc.freeze()
    return Finder
