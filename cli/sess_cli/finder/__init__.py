"""The finder: `sess` alone on a terminal. Needs the extra `sessiond[tui]`."""

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
    """Whether what draws it is installed."""
    return find_spec("textual") is not None


def run(index_path: Path, *, utc: bool = False) -> int:
    """Open the finder; returns an exit code, or becomes the agent whose session is resumed."""
    finder = load()(index_path, utc=utc)
    resume = finder.run()
    if resume is not None:
        resume.replace_this_process()
    return finder.return_code or 0


def load() -> type[Finder]:
    """Import the finder so that a keystroke does not wait for anything but its results."""
    chosen = os.environ.get("TEXTUAL_FPS")
    # Textual draws sixty times a second otherwise: up to sixteen milliseconds too late.
    os.environ["TEXTUAL_FPS"] = chosen or "250"
    from sess_cli.finder.app import Finder  # noqa: PLC0415 - not installed for everybody

    if chosen is None:  # it is not for what is started from here
        del os.environ["TEXTUAL_FPS"]
    # The screen gets the interpreter soon when a thread is busy with it.
    sys.setswitchinterval(0.001)
    # Garbage is collected while nobody types: it takes up to fifty milliseconds.
    gc.freeze()
    gc.disable()
    return Finder
