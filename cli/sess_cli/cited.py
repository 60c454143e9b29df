"""Citations on the command line: `SESSION#EVENT`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sess_common.errors import Exit, SessError
from sess_schema import citations

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import EventId
    from sess_schema.queries.sessions import SessionRow


def divided(given: str) -> tuple[str, str | None]:
    """The session and the event of a citation; no event if it names a whole session."""
    session, mark, event = given.rpartition("#")
    if mark and session and citations.looks_like_one(event):
        return session, event
    return given, None


def event_of(
    db: apsw.Connection, row: SessionRow, given: str, *, superseded: bool = False
) -> EventId:
    """The event that a citation names."""
    event = citations.resolve(db, row.key, given, superseded=superseded)
    if event is not None:
        return event
    rewritten = citations.resolve(db, row.key, given, superseded=True) is not None
    raise SessError(
        f"session {row.session} {'no longer has' if rewritten else 'has no'} event #{given}",
        hint=f"`sess show {row.session}#{given} --superseded` shows the replaced record"
        if rewritten
        else f"`sess show {row.session}` shows all events",
        code=Exit.NOTHING_FOUND,
    )
