"""Sessions chosen by IDs and filters, for commands that delete something."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from sess_schema import times
from sess_schema.queries import sessions
from sess_schema.queries.sessions import Listing, SessionRow


def chosen(
    db: apsw.Connection,
    ids: Sequence[str],
    agents: Sequence[str] | None,
    projects: Sequence[str] | None,
    older_than: str | None,
    *,
    utc: bool,
) -> list[SessionRow]:
    """The sessions that all filters match; among those with these IDs if any are given."""
    found = {row.key: row for row in (sessions.resolve(db, given) for given in ids)}
    if agents or projects or older_than:
        before = times.since(older_than, utc=utc) if older_than else None
        listing = Listing(agents or (), projects or (), every=True, limit=0)
        matching = {
            row.key: row
            for row in listing.rows(db)
            if before is None or (row.ended is not None and row.ended < before)
        }
        found = {key: row for key, row in matching.items() if not ids or key in found}
    return [*found.values()]
