"""The ids of rows, told apart by type checkers, and short keys for the ids that agents gave."""

from __future__ import annotations

from zlib import crc32

import apsw

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, NewType

    SourceId = NewType("SourceId", int)
    SessionId = NewType("SessionId", int)
    RecordId = NewType("RecordId", int)
    EventId = NewType("EventId", int)
else:  # a search does not import `typing`
    SourceId = SessionId = RecordId = EventId = int

# Of what is not in the index.
NO_SOURCE = SourceId(0)
NO_SESSION = SessionId(0)
NO_RECORD = RecordId(0)
NO_EVENT = EventId(0)


def short_key(id_: str) -> int:
    """By what records, calls and responses are found by the ids that agents gave them.

    These are random: each new one changes another page of an index over them. An index over 31
    bits, which SQLite stores in four bytes, has a third of the pages, and changes fewer as it
    grows. Others may have the same key: compare the id, too.
    """
    return crc32(id_.encode("utf-8", "replace")) & 0x7FFF_FFFF


def register_short_key(db: apsw.Connection) -> None:
    """`short_key(id)` in statements of the writer; readers have none that need it."""
    db.create_scalar_function("short_key", _of_any, 1, deterministic=True)


def _of_any(*values: Any) -> int | None:
    (id_,) = values
    return None if id_ is None else short_key(id_)
