"""The moments of a fork, which shares some with another session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import apsw

from sess_schema import sums
from sess_schema.ids import SessionId
from sess_schema.moments import Moment, moments
from sess_schema.session import shown


def forks(db: apsw.Connection, sessions: Sequence[SessionId]) -> set[SessionId]:
    """The sessions that share records with one that had them first."""
    return {
        session
        for (session,) in db.execute(
            "SELECT DISTINCT t.session_id FROM records t JOIN records o ON o.id = t.copy_of"
            " WHERE t.copy_of IS NOT NULL AND o.session_id <> t.session_id"
            " AND t.session_id IN (SELECT value FROM json_each(?))",
            (json.dumps([*sessions]),),
        )
    }


def moments_shown(db: apsw.Connection, session: SessionId) -> Iterator[Moment]:
    """A fork's moments, copied and new."""
    yield from moments(
        db.execute(
            f"SELECT e.ts, {sums.SAID}, {sums.WAITED_FOR}, e.answered FROM events e JOIN sessions s"
            f" ON s.id = ?1 WHERE e.id IN ({shown.IDS.replace('?', '?1')})",
            (session,),
        )
    )
