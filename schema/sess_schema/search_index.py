"""What a search needs besides the texts: marks in the full text, and blocks of events by time.

SQLite's tokenizer takes `请修复React组件`, `🤖done` and a shell prompt's glyphs for one word. The
words inside are indexed again in a separate column, with a few neighbours, so phrases match.

Events are numbered as they are read, mostly as time goes by, but what is imported today may be
years old. Each block of numbers has an upper bound on the times of its events: so a search finds
the newest of many matches without sorting all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import apsw

from sess_common.classes import later

# Marks failed calls, so that searching for `is_error` finds them, as grepping a transcript does.
# The index sees one word that nobody types, so `error` only finds texts that contain it.
FAILED = "is\ue000error"
_GLUE = later(  # takes 2 ms, and most queries do not need it
    "[\u0590-\u109f\u1780-\u17ff\u20a0-\u20cf\u2300-\u2bff\u3005-\u3007\u3040-\u31ff\u3400-\u9fff"
    "\uac00-\ud7af\ue000-\uf8ff\uf900-\ufaff\uff66-\uff9f"
    "\U0001f000-\U0001faff\U00020000-\U0003ffff]+"
)
BLOCK_BITS = 9  # 512 numbers
_NEAR = 200  # characters; nobody types a longer word next to a glyph
_WORDS = 4
_MOST = 500_000  # places in a text; finding them takes seconds


def marks_for(status: str | None, *texts: str) -> str:
    failed = FAILED if status in ("error", "denied") else ""
    return f"{failed} {_glued(*texts)}".strip()


def glue_in(text: str) -> bool:
    return not text.isascii() and _GLUE.search(text) is not None


def _glued(*texts: str) -> str:
    """The words next to letters of other scripts, emoji and glyphs, in order."""
    words: dict[str, None] = {}
    for text in texts:
        if not text.isascii():
            words.update(dict.fromkeys(islice(_beside(text), _MOST)))
    return " ".join(words)


def _beside(text: str) -> Iterator[str]:
    end = 0  # of the previous glue
    after = ""
    for glue in _GLUE.finditer(text):
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
        following = _GLUE.search(near)
        near = near[: following.start()] if following else near
        after = ""
        if near and not near[0].isspace():
            words = near.split()
            cut = not following and end + _NEAR < len(text) and not text[end + _NEAR].isspace()
            after = "".join(_joined(words[:-1] if cut else words, last=False))
    if after:
        yield after


def _joined(words: list[str], *, last: bool) -> Iterator[str]:
    phrase = " ".join(words[-_WORDS:] if last else words[:_WORDS])
    if any(c.isalnum() for c in phrase):
        yield phrase


def note_blocks(db: apsw.Connection, events: Iterable[tuple[int, int | None]]) -> None:
    """Raise the bounds for new events, given as (number, time)."""
    newest: dict[int, int] = {}
    for number, ts in events:
        if ts is not None and ts > newest.get(number >> BLOCK_BITS, -1):
            newest[number >> BLOCK_BITS] = ts
    db.executemany(
        "INSERT INTO event_blocks (block, newest) VALUES (?, ?)"
        " ON CONFLICT (block) DO UPDATE SET newest = max(newest, excluded.newest)",
        newest.items(),
    )


def blocks_between(db: apsw.Connection, first: int, last: int) -> list[tuple[int, int, int]]:
    """(bound, first and last number) of the blocks in a range, the latest bound first.

    Blocks without a dated event come last, with the bound -1.
    """
    if first > last:
        return []
    bounds: dict[int, int] = dict.fromkeys(range(first >> BLOCK_BITS, (last >> BLOCK_BITS) + 1), -1)
    bounds.update(
        db.execute(
            "SELECT block, newest FROM event_blocks WHERE block BETWEEN ? AND ?",
            (first >> BLOCK_BITS, last >> BLOCK_BITS),
        )
    )
    return sorted(
        (
            (newest, max(first, block << BLOCK_BITS), min(last, (block + 1 << BLOCK_BITS) - 1))
            for block, newest in bounds.items()
        ),
        reverse=True,
    )
