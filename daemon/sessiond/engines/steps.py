"""What readers hand to the writer, in steps: records with their places in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from sess_schema.ids import NO_RECORD, RecordId
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import Progress, Tracked
from sessiond.sourcekit.base import Conversation, Record, SessionSpec


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
        text, arguments = event.text, event.input
        if event.type == "system" and "\n" in text:
            text = _with_sorted_lines(text)
        if "\n" in arguments:
            arguments = _with_sorted_lines(arguments)
        parts += (event.type, event.tool or "", event.call_id or "", text, arguments)
    for result in record.results:
        parts += (result.call_id, result.status, result.output)
    if len(parts) == 1:
        parts.append("")
    # Each encoded on its own: joined first, one emoji would quadruple the size of all.
    return hash64(*[part.encode("utf-8", "replace") for part in parts])


def _with_sorted_lines(text: str) -> str:
    return "\n".join(sorted(text.split("\n")))


@dataclass(slots=True)
class Summary:
    """What one pass over the sources did."""

    seen: int = 0
    changed: int = 0
    read_bytes: int = 0
    total_bytes: int = 0
    records: int = 0
    warnings: int = 0
    gone: int = 0
    directories: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    unsettled: list[str] = field(default_factory=list)  # to be read again soon
    failed: dict[str, int] = field(default_factory=dict)  # by file: failures in a row


@dataclass(slots=True)
class Step:
    """A unit of work for the writer; each kind is a subclass."""

    file: Candidate
    row: Tracked  # of `sources`

    @property
    def weight(self) -> int:
        """How many bytes of the source it contains."""
        return 0


@dataclass(slots=True)
class AddSlice(Step):
    """New lines of a log."""

    spec: SessionSpec
    slice_: Slice

    @property
    def weight(self) -> int:
        return self.slice_.size


@dataclass(slots=True)
class CompareLog(Step):
    """A log changed without growing: compare it with the archive."""


@dataclass(slots=True)
class ReplaceAttachment(Step):
    """An overflowed output, which the writer reads whole."""


@dataclass(slots=True)
class RefreshSession(Step):
    """The log is unchanged, but a sidecar has more about its session."""

    spec: SessionSpec


@dataclass(slots=True)
class ChangeConversation(Step):
    """What changed in a conversation of a document or a database."""

    conversation: Conversation

    @property
    def weight(self) -> int:
        return sum(item.size for item in self.conversation.items)


@dataclass(slots=True)
class ReplaceDocument(Step):
    """A piece of a document to archive; its conversations were handed over before."""

    data: bytes
    offset: int


@dataclass(slots=True)
class KeepState(Step):
    """A database was read to its end; `state` is given to its reader next time."""

    state: dict[str, Any]


@dataclass(slots=True)
class Finish(Step):
    """The source was read to its end, as of the stat."""

    stat: Stat
    unsettled: bool = False  # it is still being written: read it again soon
    partial: bool = False  # not everything was compared: the next walk reads it again
    empty: bool = False  # nothing was read: forget any unfinished line


@dataclass(slots=True)
class Vanish(Step):
    """The file is gone; its contents stay in the index."""


@dataclass(slots=True)
class Fail(Step):
    """The source cannot be read now."""

    problem: str
    crashed: bool = False  # our bug, not the file's fault
