"""Records with their places in a file, as many as fit in a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from sess_schema.ids import NO_RECORD, RecordId
from sessiond.reading.tracked import Progress
from sessiond.sourcekit.base import Record


@dataclass(slots=True)
class PlacedRecord:
    """A record with its place in the file and the hash that identifies copies of it."""

    offset: int
    length: int
    line: int
    record: Record
    digest: int
    id: RecordId = NO_RECORD  # when stored
    copy_of: RecordId | None = None  # the record that owns its events


@dataclass(slots=True)
class Problem:
    line: int
    offset: int
    reason: str
    preview: str


@dataclass(slots=True)
class Slice:
    start: int
    raw: bytes  # not needed once it is packed
    packed: bytes | None
    records: list[PlacedRecord]
    problems: list[Problem]
    progress: Progress
    unfinished: bytes = b""  # the last line, if the writer left it without a newline
    size: int = 0  # of `raw`


def hash64(*parts: bytes) -> int:
    """A signed 64-bit hash, as SQLite stores integers."""
    return int.from_bytes(blake2b(b"\0".join(parts), digest_size=8).digest(), "little", signed=True)


def content_digest(record: Record) -> int:
    """A hash that identifies copies of a record that has an id: its text without ids and times.

    A copy may have its JSON in another order: lines that come from several values are sorted.
    """
    parts: list[str] = [record.kind]
    for event in record.events:
        text, given = event.text, event.input
        if event.type == "system" and "\n" in text:
            text = _sorted(text)
        if "\n" in given:
            given = _sorted(given)
        parts += (event.type, event.tool or "", event.call_id or "", text, given)
    for result in record.results:
        parts += (result.call_id, result.status, result.output)
    if len(parts) == 1:
        parts.append("")
    # Each encoded on its own: joined first, one emoji would quadruple the size of all.
    return hash64(*[part.encode("utf-8", "replace") for part in parts])


def _sorted(text: str) -> str:
    return "\n".join(sorted(text.split("\n")))
