"""What is exported together is read for secrets first: what is masked once is masked everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apsw

from sess_redaction.redactor import Redactor
from sess_schema import archive
from sess_schema.archive import Damaged, RecordReader
from sess_schema.ids import SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

_RECORDS = (
    "SELECT source_id, retired, offset, length FROM records"
    " WHERE session_id = ? AND retired = 0 ORDER BY source_id, offset"
)


def learn(db: apsw.Connection, rows: Iterable[SessionRow], redactor: Redactor | None) -> None:
    """Read these sessions and their subagents, each once."""
    if redactor is None:
        return
    for row in rows:
        for session in sessions.family(db, row.key):
            if session not in redactor.learned:
                redactor.learned.add(session)
                redactor.learn(_records(db, session))


def repeated(db: apsw.Connection, row: SessionRow, redactor: Redactor | None) -> int:
    """How many of the secrets that are known occur in a session or its subagents."""
    if redactor is None:
        return 0
    met = set[str]()
    for session in sessions.family(db, row.key):
        for raw in _records(db, session):
            met |= redactor.repeated_in(raw.decode("utf-8", "replace"))
    return len(met)


def _records(db: apsw.Connection, session: SessionId) -> Iterator[bytes]:
    reader = RecordReader(db)
    places: list[tuple[int, ...]] = db.execute(_RECORDS, (session,)).fetchall()  # type: ignore[assignment]
    for place in places:
        try:
            yield reader.bytes_of(place).rstrip(b"\r\n")
        except Damaged as damage:
            archive.met.remove(damage)  # whoever shows it says so
