"""Finds the originals of messages that a fork copied under new ids."""

from __future__ import annotations

import re
from typing import Any

from sessiond.sourcekit.foreign import Foreign

_ID = re.compile(r"msg_([0-9a-f]{12})")
_CLOCK_BITS = 36  # an id starts with this much of the millisecond it was made in
_TOLERANCE = 60_000  # milliseconds between a message and its id


def copies_by_time(db: Foreign, session: str, table: str, heads: str) -> dict[str, str]:
    """Originals by message. The copy of a message keeps its time, but not its id.

    Nothing names the session that was forked: it is an older one with a message of that time.
    """
    if not db.has_table(table):
        return {}
    of_session = (
        f"SELECT id, time_created FROM {table} WHERE session_id = ? AND typeof(id) = 'text'"
    )
    rows = db.rows(f"{of_session} ORDER BY time_created, id", (session,))
    copied = [(name, made) for name, made in rows if _is_copy(name, made)]
    if not copied:
        return {}
    originals: dict[int, str] = {}
    missing = {made for _, made in copied}
    for (older,) in db.rows(
        f"SELECT s.id FROM {heads} s JOIN {heads} f ON f.id = ?1"
        " WHERE s.id <> f.id AND s.time_created < f.time_created AND EXISTS"
        f" (SELECT 1 FROM {table} o WHERE o.session_id = s.id AND o.time_created = ?2)"
        " ORDER BY s.time_created, s.id",
        (session, copied[0][1]),
    ):
        for name, made in db.rows(of_session, (older,)):
            originals.setdefault(made, name)
        missing -= originals.keys()
        if not missing:
            break
    return {name: originals[made] for name, made in copied if made in originals}


def copies_by_number(db: Foreign, session: str, origin: str | None) -> dict[str, str]:
    """Originals by message, in the session that was forked: a copied row keeps its number."""
    copies: dict[str, str] = {}
    seen = {session}
    while origin and origin not in seen and db.has("session_v2", "fork_session_id"):
        seen.add(origin)
        copies |= dict(
            db.rows(
                "SELECT c.id, o.id FROM session_message c JOIN session_message o"
                " ON o.session_id = ?2 AND o.seq = c.seq AND o.type = c.type"
                " AND o.time_created = c.time_created WHERE c.session_id = ?1"
                " AND typeof(c.id) = 'text' AND typeof(o.id) = 'text'",
                (session, origin),
            )
        )
        rows = db.rows("SELECT fork_session_id FROM session_v2 WHERE id = ?", (origin,))
        origin = rows[0][0] if rows else None  # a fork of a fork copied copies
    return copies


def _is_copy(name: str, made: Any) -> bool:
    found = _ID.match(name)
    if found is None or not isinstance(made, int):
        return False
    apart = abs((int(found[1], 16) >> 12) - made % (1 << _CLOCK_BITS))
    return min(apart, (1 << _CLOCK_BITS) - apart) > _TOLERANCE
