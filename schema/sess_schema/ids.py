"""The ids of rows, told apart by type checkers: all are integers, and many functions take two."""

from __future__ import annotations

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NewType

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
