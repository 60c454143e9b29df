"""What the full-text index gets besides the texts: a mark for failed calls, and words it misses.

SQLite's tokenizer takes `请修复React组件`, `🤖done` and a shell prompt's glyphs for one word. The
words inside are indexed again in a separate column, with a few neighbours, so phrases match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

# Marks failed calls, so that searching for `is_error` finds them, as grepping a transcript does.
# The index sees one word that nobody types, so `error` only finds texts that contain it.
FAILED = "is\ue000error"
_GLUE = (
    "[\u0590-\u109f\u1780-\u17ff\u20a0-\u20cf\u2300-\u2bff\u3005-\u3007\u3040-\u31ff\u3400-\u9fff"
    "\uac00-\ud7af\ue000-\uf8ff\uf900-\ufaff\uff66-\uff9f"
    "\U0001f000-\U0001faff\U00020000-\U0003ffff]+"
)
_NEAR = 200  # characters; nobody types a longer word next to a glyph
_WORDS = 4
_MOST = 500_000  # places in a text; finding them takes seconds


def marks(status: str | None, *texts: str) -> str:
    failed = FAILED if status in ("error", "denied") else ""
    return f"{failed} {_glued(*texts)}".strip()


@cache
def _glue() -> re.Pattern[str]:
    return re.compile(_GLUE)  # takes 2 ms, and most queries do not need it


def glue_in(text: str) -> bool:
    return not text.isascii() and _glue().search(text) is not None


def _glued(*texts: str) -> str:
    """The words next to letters of other scripts, emoji and glyphs, in order."""
    found: dict[str, None] = {}
    for text in texts:
        if not text.isascii():
            found.update(dict.fromkeys(islice(_beside(text), _MOST)))
    return " ".join(found)


def _beside(text: str) -> Iterator[str]:
    pattern, end = _glue(), 0  # of the previous glue
    after = ""
    for glue in pattern.finditer(text):
        if after:
            yield after
        begin = max(end, glue.start() - _NEAR)
        before = text[begin : glue.start()]
        words = before.split()
        if words and not before[-1].isspace():
            whole = begin in (end, 0) or text[begin - 1].isspace()
            yield from _joined(words if whole else words[1:], last=True)
        end = glue.end()
        near = text[end : end + _NEAR]
        following = pattern.search(near)
        near = near[: following.start()] if following else near
        after = ""
        if near and not near[0].isspace():
            words = near.split()
            cut = not following and end + _NEAR < len(text) and not text[end + _NEAR].isspace()
            after = "".join(_joined(words[:-1] if cut else words, last=False))
    if after:
        yield after


def _joined(words: list[str], *, last: bool) -> Iterator[str]:
    some = " ".join(words[-_WORDS:] if last else words[:_WORDS])
    if any(c.isalnum() for c in some):
        yield some
