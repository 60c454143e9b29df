"""Where output goes: its width, its colours, and what must not reach a terminal.

Transcript text is hostile. On a terminal it loses its escape sequences, and what is left of
control and direction characters is shown instead of obeyed. In a pipe it stays as it is.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from sess_schema.escape import safe

_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "match": "1;33",
}


class Terminal:
    """One output stream and what it can show."""

    def __init__(self, stream: TextIO | None = None, *, paged: bool = False) -> None:
        self.stream = stream if stream is not None else sys.stdout
        self.interactive = paged or self.stream.isatty()
        self.colour = _wants_colour(interactive=self.interactive)
        self.width = _width() if self.interactive else None

    def text(self, text: str) -> str:
        """Foreign text, as this stream may have it."""
        return safe(text) if self.interactive or self.colour else text

    def line(self, text: str) -> str:
        """Foreign text on one line."""
        return " ".join(self.text(text).split())

    def style(self, text: str, *names: str) -> str:
        if not self.colour or not text or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def write(self, text: str) -> None:
        self.stream.write(text + "\n")


def _wants_colour(*, interactive: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return os.environ["FORCE_COLOR"] != "0"
    return interactive and os.environ.get("TERM") != "dumb"


def _width() -> int:
    return max(40, shutil.get_terminal_size((80, 24)).columns)
