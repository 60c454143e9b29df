"""The records of a document or the rows of a foreign database, as stored in the index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import apsw

from sess_schema.ids import SourceId

GONE = -1  # the place of a row whose whole conversation left the database
STALE = -(1 << 62)  # added to the place of a row that only an older edition read


@dataclass(slots=True)
class KnownRow:
    place: int
    digest: int
    alias: str | None = None
    ts: int | None = None

    @property
    def is_stale(self) -> bool:
        """Whether only an older edition read it; its place and digest are never those of a row."""
        return self.place < GONE


class _Whole(Protocol):
    """A document or database, as a source in the index."""

    id: SourceId | None  # None until something of it is read


class KnownRows:
    """Queries `database_rows` for one database or document."""

    def __init__(self, db: apsw.Connection, whole: _Whole) -> None:
        self._db = db
        self._whole = whole

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it was ever read."""
        return self._whole.id is None

    def get(self, key: str) -> KnownRow | None:
        for row in self._db.execute(
            "SELECT place, digest, alias, ts FROM database_rows WHERE source_id = ? AND key = ?",
            (self._whole.id, key),
        ):
            return KnownRow(*row)
        return None

    def under(self, prefix: str) -> dict[str, KnownRow]:
        """All rows whose key starts with `prefix`."""
        if self._whole.id is None:
            return {}
        return {
            key: KnownRow(*rest)
            for key, *rest in self._db.execute(
                "SELECT key, place, digest, alias, ts FROM database_rows"
                " WHERE source_id = ? AND key >= ? AND key < ?",
                (self._whole.id, prefix, after(prefix)),
            )
        }

    def places(self, prefix: str) -> Iterator[tuple[str, int]]:
        """(key, place) in key order; do not write to the index until it is exhausted."""
        yield from self._db.execute(
            "SELECT key, place FROM database_rows"
            " WHERE source_id = ? AND key >= ? AND key < ? ORDER BY key",
            (self._whole.id, prefix, after(prefix)),
        )

    def in_order(self, keys: Iterable[str]) -> list[str]:
        """The stored ones of these keys, in display order."""
        return [
            key
            for (key,) in self._db.execute(
                "SELECT r.key FROM json_each(?) k CROSS JOIN database_rows r"
                " ON r.source_id = ? AND r.key = k.value"
                " JOIN records t ON t.id = r.record_id AND t.retired = 0 ORDER BY t.offset",
                (json.dumps(list(keys)), self._whole.id),
            )
        ]

    def conversations(self) -> list[str]:
        """The conversations that were present at the last read."""
        return [
            path.rpartition("#")[2]
            for (path,) in self._db.execute(
                "SELECT path FROM sources WHERE part_of = ? AND state = 'live'",
                (self._whole.id,),
            )
        ]

    def recent(self, most: int) -> list[str]:
        """The most recently changed conversations."""
        return [
            path.rpartition("#")[2]
            for (path,) in self._db.execute(
                "SELECT path FROM sources WHERE part_of = ? AND state = 'live'"
                " ORDER BY mtime_ns DESC LIMIT ?",
                (self._whole.id, most),
            )
        ]


def after(prefix: str) -> str:
    """The first string that sorts after all strings with the prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def prefix_of(conversation: str) -> str:
    """What the keys of its records start with, and those of no other conversation.

    Some ids have slashes: that of a subagent may start with that of its parent and a slash.
    """
    return conversation.replace("%", "%25").replace("/", "%2F") + "/"
