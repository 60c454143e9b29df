"""What a reader of sources hands to the writer, and what a pass over them did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sessiond.engines.slices import Slice
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Conversation, SessionSpec


@dataclass(slots=True)
class Summary:
    """What a pass did."""

    seen: int = 0
    changed: int = 0
    read_bytes: int = 0
    total_bytes: int = 0
    turns: int = 0
    warnings: int = 0
    gone: int = 0
    directories: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    unsettled: list[str] = field(default_factory=list)  # to be looked at again in a moment
    failed: dict[str, int] = field(default_factory=dict)  # databases, and how often in a row


@dataclass(slots=True)
class Step:
    """A piece of work for the writer: part of a file, or what ends it."""

    file: Candidate
    source: Tracked
    spec: SessionSpec | None = None
    part: Slice | None = None
    conversation: Conversation | None = None  # of a database
    state: dict[str, Any] | None = None  # a database was read to its end; what its reader keeps
    stat: Stat | None = None  # the file was read to its end
    attachment: bool = False  # read whole by the writer
    rewritten: bool = False
    compare: bool = False  # it changed without growing: only the archive tells what
    unsettled: bool = False  # the last line is still being written
    partial: bool = False  # not everything was compared: the next walk looks again
    gone: bool = False
    problem: str | None = None
    crashed: bool = False

    @property
    def weight(self) -> int:
        if self.conversation is not None:
            return sum(len(item.raw) for item in self.conversation.items)
        return len(self.part.raw) if self.part else 0
