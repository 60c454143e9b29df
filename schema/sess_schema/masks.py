"""Secrets that were masked before they were archived (`redact.at_ingest`).

A mask has as many bytes as what it stands for, so that every offset stays what it is in the file.
A file is compared with a masked archive outside the masks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

SIGN = "*"
SHORTEST = 4  # bytes; fewer stars are not taken for a mask
_FACT = "masked_at_ingest"
_MASK = re.compile(rb"\*{4,}|\A\*+|\*+\Z")  # the border of a piece may cut one


def note(db: apsw.Connection) -> None:
    """From now on, what is archived may be masked."""
    if not are_used(db):
        with db:
            db.execute("INSERT INTO facts VALUES (?, '')", (_FACT,))


def are_used(db: apsw.Connection) -> bool:
    """Whether anything in this index may be masked."""
    return db.execute("SELECT 1 FROM facts WHERE name = ?", (_FACT,)).get is not None


def same(live: bytes, archived: bytes, *, masked: bool) -> bool:
    """Whether a file still has what was archived of it."""
    if live == archived:
        return True
    return masked and len(live) == len(archived) and _same_outside(live, archived)


def _same_outside(live: bytes, archived: bytes) -> bool:
    at = 0
    for mask in _MASK.finditer(archived):
        if live[at : mask.start()] != archived[at : mask.start()]:
            return False
        at = mask.end()
    return live[at:] == archived[at:]


def hidden(data: bytes) -> bytes:
    """As many bytes, of which only a newline at the end is left."""
    end = b"\n" if data.endswith(b"\n") else b""
    return SIGN.encode() * (len(data) - len(end)) + end
