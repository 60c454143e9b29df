"""Terminal escape sequences: the only module that recognises them.

ECMA-48: a control sequence (`ESC [`, parameters, a final letter) sets colours and moves the cursor;
a string (`ESC ]` for titles and links, `ESC P` and others) ends with BEL or `ESC \\`; every other
sequence is ESC and a character or two. Each may also start with a single character above 127.
"""

from __future__ import annotations

from sess_common.patterns import later

CONTROL = r"(?:\x1b\[|\x9b)"
PARAMETERS = r"[0-?]*[ -/]*"
FINAL = r"[@-~]"
STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"
# A string never spans lines: an unterminated one must not swallow the text after it.
INSIDE = r"[^\x00-\x08\x0a-\x1f\x7f-\x9f]*"
END = r"(?:\x07|\x1b\\|\x9c)"
SHORT = r"\x1b[ -/]*[0-~]"

_SEQUENCE = later(f"{CONTROL}{PARAMETERS}{FINAL}|{STRING}{INSIDE}{END}|{SHORT}")
_BEGINS = later(r"[\x1b\x90\x98\x9b\x9d-\x9f]")


def without(text: str) -> str:
    """The text without sequences. Other control characters and incomplete sequences stay."""
    if text.isascii() and "\x1b" not in text:
        return text
    return _SEQUENCE.sub("", text) if _BEGINS.search(text) else text
