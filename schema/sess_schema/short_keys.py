"""Short keys by which records, calls and responses are found by the ids that agents gave them.

These ids are random: each new one changes another page of an index over them. An index over four
bytes has a third of the pages that one over the ids has, and changes fewer of them as it grows.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import apsw


def short_key(id_: str) -> int:
    """31 bits, which SQLite stores in four bytes. Others may have the same: compare the id, too."""
    return crc32(id_.encode("utf-8", "replace")) & 0x7FFF_FFFF


def register(db: apsw.Connection) -> None:
    """`short_key(id)` in statements of the writer; readers have none that need it."""
    db.create_scalar_function("short_key", _of_any, 1, deterministic=True)


def _of_any(*given: Any) -> int | None:
    (id_,) = given
    return None if id_ is None else short_key(id_)
