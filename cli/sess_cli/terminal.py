"""Where output goes: its width, its colours, and what must not reach a terminal.

Transcript text is hostile. On a terminal it loses its escape sequences, and what is left of
control and direction characters is shown instead of obeyed. In a pipe it stays as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TextIO

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_BREAKS = re.compile("\r\n|[\r\u0085\u2028\u2029\v\f]")
_HARMFUL = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
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


def safe(text: str) -> str:
    """Text that a terminal shows and does not obey; only newlines and tabs keep their meaning."""
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCES.sub("", text)
    text = _BREAKS.sub("\n", text)
    return _HARMFUL.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"


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
