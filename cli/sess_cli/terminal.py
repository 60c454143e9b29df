"""An output stream: its width, its colours, and what must not reach a terminal.

Transcript text is hostile. On a terminal, escape sequences are removed, and remaining control and
direction characters are printed visibly instead of taking effect. In a pipe it is unchanged.
"""

from __future__ import annotations

import os
import sys

from sess_common.classes import TYPE_CHECKING
from sess_common.escape import safe

if TYPE_CHECKING:
    from typing import TextIO

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
_WITH_LINKS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio")
_FIRST_VTE = 5000


class Terminal:
    """One output stream and what it can show."""

    def __init__(self, stream: TextIO | None = None, *, paged: bool = False) -> None:
        self.stream = stream if stream is not None else sys.stdout
        self.interactive = paged or self.stream.isatty()
        self.colour = _wants_colour(interactive=self.interactive)
        self.width = _width() if self.interactive else None

    def text(self, text: str) -> str:
        """Foreign text, made safe for this stream."""
        return safe(text) if self.interactive or self.colour else text

    def line(self, text: str) -> str:
        """Foreign text on one line."""
        return " ".join(self.text(text).split())

    def style(self, text: str, *names: str) -> str:
        if not self.colour or not text or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def link(self, text: str, path: str | None) -> str:
        """Text that opens a file when clicked, if the terminal supports it."""
        if not path or not self.colour or not _knows_links(interactive=self.interactive):
            return text
        from urllib.parse import quote  # rarely needed

        return f"\x1b]8;;file://{quote(path.encode('utf-8', 'replace'))}\x1b\\{text}\x1b]8;;\x1b\\"

    def write(self, text: str) -> None:
        self.stream.write(text + "\n")


def _wants_colour(*, interactive: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return os.environ["FORCE_COLOR"] != "0"
    return interactive and os.environ.get("TERM") != "dumb"


def _knows_links(*, interactive: bool) -> bool:
    """Whether the terminal is known to support OSC 8; others may print garbage."""
    environment = os.environ
    if (forced := environment.get("FORCE_HYPERLINK")) is not None:
        return forced != "0"
    if not interactive:
        return False
    if environment.get("TERM_PROGRAM") in _WITH_LINKS or "kitty" in environment.get("TERM", ""):
        return True
    if environment.get("WT_SESSION") or environment.get("KONSOLE_VERSION"):
        return True
    vte = environment.get("VTE_VERSION", "")
    return vte.isdigit() and int(vte) >= _FIRST_VTE


def _width() -> int:
    import shutil  # a pipe has no width

    return max(40, shutil.get_terminal_size((80, 24)).columns)
