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
    failed: dict[str, int] = field(default_factory=dict)  # whole files, and how often in a row


@dataclass(slots=True)
class Step:
    """A piece of work for the writer; each kind of it is a class of its own."""

    file: Candidate
    source: Tracked

    @property
    def weight(self) -> int:
        """How many bytes of the source it brings."""
        return 0


@dataclass(slots=True)
class AddSlice(Step):
    """New lines of a log."""

    spec: SessionSpec
    slice_: Slice

    @property
    def weight(self) -> int:
        return len(self.slice_.raw)


@dataclass(slots=True)
class CompareLog(Step):
    """A log changed without growing: only the archive tells how."""


@dataclass(slots=True)
class ReplaceAttachment(Step):
    """An overflowed output, read whole by the writer."""


@dataclass(slots=True)
class RefreshSession(Step):
    """The log is as it was, but a file beside it tells more about its session."""

    spec: SessionSpec


@dataclass(slots=True)
class ChangeConversation(Step):
    """What changed in a conversation of a document or a database."""

    conversation: Conversation

    @property
    def weight(self) -> int:
        return sum(len(item.raw) for item in self.conversation.items)


@dataclass(slots=True)
class ReplaceDocument(Step):
    """A document as it is now, to be archived; its conversations were handed over before."""

    data: bytes


@dataclass(slots=True)
class KeepState(Step):
    """A database was read to its end; what its reader wants back the next time."""

    state: dict[str, Any]


@dataclass(slots=True)
class Finish(Step):
    """The source was read to its end, as it was when the stat was taken."""

    stat: Stat
    unsettled: bool = False  # it is still being written: look again in a moment
    partial: bool = False  # not everything was compared: the next walk looks again
    empty: bool = False  # nothing was read, so no unfinished line is left of it


@dataclass(slots=True)
class Vanish(Step):
    """The file is gone; what it told stays."""


@dataclass(slots=True)
class Fail(Step):
    """The source cannot be read now."""

    problem: str
    crashed: bool = False  # by a fault of ours, not of the file's
