"""Makes text safe for terminals: transcripts, and names derived from them, are hostile.

This module alone recognises escape sequences. ECMA-48: a control sequence (`ESC [`, parameters, a
final letter) sets colours and moves the cursor; a string (`ESC ]` for titles and links, `ESC P` and
others) ends with BEL or `ESC \\`; every other sequence is ESC and a character or two. Each may also
start with a single character above 127.
"""

from __future__ import annotations

from sess_common.classes import TYPE_CHECKING, later

if TYPE_CHECKING:
    import re

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
_BREAKS = later("\r\n|[\r\u0085\u2028\u2029\v\f]")
_HARMFUL = later(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def without_sequences(text: str) -> str:
    """The text without sequences. Other control characters and incomplete sequences stay."""
    if text.isascii() and "\x1b" not in text:
        return text
    return _SEQUENCE.sub("", text) if _BEGINS.search(text) else text


def safe(text: str) -> str:
    """Text that a terminal prints and does not interpret; only newlines and tabs take effect."""
    if text.isascii() and text.isprintable():
        return text
    text = without_sequences(text)
    text = _BREAKS.sub("\n", text)
    return _HARMFUL.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"
