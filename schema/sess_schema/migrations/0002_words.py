"""Marks the words that SQLite's tokenizer cannot see in events written before this version.

Frozen with its migration: a copy of how `marks` were made then, which imports nothing of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import apsw

_FAILED = "is\ue000error"
_GLUE = re.compile(
    "[\u0590-\u109f\u1780-\u17ff\u20a0-\u20cf\u2300-\u2bff\u3005-\u3007\u3040-\u31ff\u3400-\u9fff"
    "\uac00-\ud7af\ue000-\uf8ff\uf900-\ufaff\uff66-\uff9f"
    "\U0001f000-\U0001faff\U00020000-\U0003ffff]+"
)
_NEAR = 200
_WORDS = 4
_COLUMNS = "id, text, input, output, marks FROM event_texts WHERE id = ?"


def apply(db: apsw.Connection, progress: Callable[[int, int], None]) -> None:
    rows = db.execute(
        "SELECT e.id, e.status, x.text, x.input, x.output, x.marks"
        " FROM events e JOIN event_texts x ON x.id = e.id"
    )
    wrong = [
        (event, right)
        for event, status, *texts, old in rows
        if (right := _marks(status, *texts)) != old
    ]
    for number, (event, right) in enumerate(wrong):
        progress(number, len(wrong))
        db.execute(
            "INSERT INTO event_index (event_index, rowid, text, input, output, marks)"
            f" SELECT 'delete', {_COLUMNS}",
            (event,),
        )
        db.execute("UPDATE event_texts SET marks = ? WHERE id = ?", (right, event))
        db.execute(
            f"INSERT INTO event_index (rowid, text, input, output, marks) SELECT {_COLUMNS}",
            (event,),
        )


def _marks(status: str | None, *texts: str) -> str:
    failed = _FAILED if status in ("error", "denied") else ""
    glued = dict.fromkeys(words for text in texts if not text.isascii() for words in _beside(text))
    return f"{failed} {' '.join(glued)}".strip()


def _beside(text: str) -> Iterator[str]:
    end = 0  # of the glue before
    after = ""
    for glue in _GLUE.finditer(text):
        if after:
            yield after
        begin = max(end, glue.start() - _NEAR)
        before = text[begin : glue.start()]
        words = before.split()
        if words and not before[-1].isspace():
            whole = begin in (end, 0) or text[begin - 1].isspace()
            yield from _joined((words if whole else words[1:])[-_WORDS:])
        end = glue.end()
        near = text[end : end + _NEAR]
        following = _GLUE.search(near)
        near = near[: following.start()] if following else near
        after = ""
        if near and not near[0].isspace():
            words = near.split()
            cut = not following and end + _NEAR < len(text) and not text[end + _NEAR].isspace()
            after = "".join(_joined((words[:-1] if cut else words)[:_WORDS]))
    if after:
        yield after


def _joined(words: list[str]) -> Iterator[str]:
    some = " ".join(words)
    if any(c.isalnum() for c in some):
        yield some
