"""Escape sequences of terminals: the one place that knows what they look like.

ECMA-48: a control sequence (`ESC [`, parameters, a final letter) sets colours and moves; a string
(`ESC ]` for titles and links, `ESC P` and others) ends with BEL or `ESC \\`; every other sequence
is ESC and a character or two. Each of them may also begin with one character above 127.
"""

from __future__ import annotations

import re

CONTROL = r"(?:\x1b\[|\x9b)"
PARAMETERS = r"[0-?]*[ -/]*"
FINAL = r"[@-~]"
STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"
# A string ends with its line at the latest: an open one must not swallow the text behind it.
INSIDE = r"[^\x00-\x08\x0a-\x1f\x7f-\x9f]*"
END = r"(?:\x07|\x1b\\|\x9c)"
SHORT = r"\x1b[ -/]*[0-~]"

_SEQUENCE = re.compile(f"{CONTROL}{PARAMETERS}{FINAL}|{STRING}{INSIDE}{END}|{SHORT}")
_BEGINS = re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]")


def without(text: str) -> str:
    """The text alone. Other control characters stay, and so does a sequence that is not whole."""
    if text.isascii() and "\x1b" not in text:
        return text
    return _SEQUENCE.sub("", text) if _BEGINS.search(text) else text
