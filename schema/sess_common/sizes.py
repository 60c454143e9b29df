"""Where the bytes of the index are. Reads every page, so only where somebody asks for it."""

from __future__ import annotations

import apsw

_FREE = "free"
_OTHER = "other"
_PARTS = {
    "chunks": "archive",
    "event_texts": "texts",
    "event_index": "full text",
    "records": "records",
    "database_rows": "records",
    "events": "events",
    "files": "events",
    "edits": "events",
    "commits": "events",
    "usage": "usage",
    "usage_sums": "sums",
    "event_sums": "sums",
    "spans": "sums",
    "digests": "sums",
}


def by_part(db: apsw.Connection) -> dict[str, int]:
    """Bytes of each part with its indexes, the largest first; `free` is what deletions left."""
    tables = dict(db.execute("SELECT name, tbl_name FROM sqlite_schema WHERE rootpage"))
    found: dict[str, int] = {}
    for name, size in db.execute("SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE"):
        table = tables.get(name, name)
        if table.startswith("event_index_"):
            table = "event_index"
        part = _PARTS.get(table, _OTHER)
        found[part] = found.get(part, 0) + size
    found[_FREE] = db.pragma("freelist_count") * db.pragma("page_size")
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def of_transcripts(db: apsw.Connection) -> int:
    """Bytes that were read from files; conversations in databases and documents have none."""
    size: int = db.execute("SELECT coalesce(sum(offset), 0) FROM sources WHERE part_of IS NULL").get
    return size
