"""Makes text safe for terminals: transcripts, and names derived from them, are hostile."""

from __future__ import annotations

from sess_common import ansi
from sess_common.classes import TYPE_CHECKING
from sess_common.patterns import later

if TYPE_CHECKING:
    import re

_BREAKS = later("\r\n|[\r\u0085\u2028\u2029\v\f]")
_HARMFUL = later(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """Text that a terminal prints and does not interpret; only newlines and tabs take effect."""
    if text.isascii() and text.isprintable():
        return text
    text = ansi.without(text)
    text = _BREAKS.sub("\n", text)
    return _HARMFUL.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"
