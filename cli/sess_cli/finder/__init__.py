"""The finder: `sess` without arguments on a terminal. Needs the extra `sessiond[tui]`."""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from sess_cli.finder.app import Finder


def available() -> bool:
    """Whether its dependencies are installed."""
    return find_spec("textual") is not None


def run(index_path: Path, *, utc: bool = False) -> int:
    """Open the finder; returns an exit code, or becomes the agent whose session is resumed."""
    finder = load()(index_path, utc=utc)
    resume = finder.run()
    if resume is not None:
        resume.replace_this_process()
    return finder.return_code or 0


def load() -> type[Finder]:
    """Import the finder, set up so that a keystroke waits only for its results."""
    chosen = os.environ.get("TEXTUAL_FPS")
    # Textual's default of 60 frames per second would delay drawing by up to 16 ms.
    os.environ["TEXTUAL_FPS"] = chosen or "250"
    from sess_cli.finder.app import Finder  # noqa: PLC0415 - an optional extra

    if chosen is None:  # child processes should not inherit it
        del os.environ["TEXTUAL_FPS"]
    # Lets the screen thread run soon even if another thread is busy.
    sys.setswitchinterval(0.001)
    # Garbage is collected while nobody types: it takes up to 50 ms.
    gc.freeze()
    gc.disable()
    return Finder
