"""The transcript that an edit is about: its row in the index and its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sess_common.errors import Exit, SessError
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SessionId, SourceId

LOG, DOCUMENT, DATABASE = "log", "document", "database"
_SQL = (
    "SELECT p.id, coalesce(w.path, p.path), p.state, iif(w.id IS NULL, 'log', w.kind),"
    " coalesce(w.id, p.id), p.path FROM session_sources m JOIN sources p ON p.id = m.source_id"
    " LEFT JOIN sources w ON w.id = p.part_of WHERE m.session_id = ? AND p.kind = 'transcript'"
    " AND EXISTS (SELECT 1 FROM records t WHERE t.session_id = m.session_id AND t.source_id = p.id"
    " AND t.retired = 0) ORDER BY p.state = 'gone', p.id"
)


@dataclass(frozen=True, slots=True)
class Target:
    """One transcript of a session."""

    session: SessionRow
    source: SourceId  # whose records are meant
    path: str  # of the file
    state: str
    kind: str  # log, document, database
    whole: SourceId  # the source with the bytes of the file
    name: str  # the path; of a conversation in a file, with its id


def find(db: apsw.Connection, given: str, which: str | None = None) -> Target:
    """The transcript of a session; the one that `--source` names if there are several."""
    row = sessions.resolve(db, given)
    found = [Target(row, *values) for values in _rows(db, row.key)]
    if which is not None:
        for number, target in enumerate(found, 1):
            if which in (str(number), target.name, target.path):
                return target
        raise SessError(
            f'session "{row.session}" has no transcript "{which}"',
            hint=f"it has {len(found)}; give a number or a path",
            code=Exit.NOTHING_FOUND,
        )
    if not found:
        raise SessError(f'session "{row.session}" has no transcript', code=Exit.NOTHING_FOUND)
    there = [target for target in found if target.state != "gone"] or found
    if len(there) == 1:
        return there[0]
    listed = "".join(f"\n  {number}  {target.name}" for number, target in enumerate(found, 1))
    raise SessError(
        f'session "{row.session}" has {len(found)} transcripts:{listed}',
        hint="choose one with `--source N`",
    )


def _rows(db: apsw.Connection, session: SessionId) -> list[tuple[Any, ...]]:
    return [*db.execute(_SQL, (session,))]
