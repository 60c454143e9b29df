"""What each number means that is printed about sessions; docs/numbers.md says it in words."""

from __future__ import annotations

import apsw

from sess_schema.session import shown


def failures(db: apsw.Connection, session: int) -> int:
    """How many tool calls of a session failed or were refused."""
    return int(
        db.execute(
            f"SELECT count(*) FROM events WHERE id IN ({shown.IDS})"
            " AND status IN ('error', 'denied') AND unjoined IS NULL",
            (session,),
        ).get
    )
