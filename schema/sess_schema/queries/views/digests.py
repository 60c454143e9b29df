"""Makes digests: what each session adds to the views of `sess stats`. See `parts.py`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import apsw

from sess_schema.ids import SessionId
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import parts
from sess_schema.queries.views.parts import Count, Counted

_COMPARED = 100  # sessions at once


def make(db: apsw.Connection, seconds: float) -> bool:
    """Make the digests that are due, as long as there is time; whether none is left."""
    if not any(parts.due(db)):
        return True
    until = time.process_time() + seconds
    for sessions in parts.due(db):
        if time.process_time() >= until:
            return False
        with db:
            _renew(db, sessions)
    return True


def make_all(db: apsw.Connection) -> None:
    sessions: list[Any] = db.execute("SELECT id FROM sessions").fetchall()
    with db:
        _renew(db, [session for (session,) in sessions])


def differences(db: apsw.Connection) -> int:
    """How many stored digests are wrong, missing or too many."""
    if not parts.are_valid(db):
        return 0  # nobody reads them
    digested: list[Any] = db.execute(
        "SELECT id FROM sessions WHERE id NOT IN (SELECT session_id FROM undigested)"
    ).fetchall()
    wrong = 0
    for begin in range(0, len(digested), _COMPARED):
        sessions = [session for (session,) in digested[begin : begin + _COMPARED]]
        stored = set(
            db.execute(
                "SELECT part, session_id, data FROM digests"
                " WHERE session_id IN (SELECT value FROM json_each(?))",
                (json.dumps(sessions),),
            )
        )
        differ = stored ^ {*_made(db, sessions)}
        wrong += len({(part, session) for part, session, _ in differ})
    return wrong


def _renew(db: apsw.Connection, sessions: list[SessionId]) -> None:
    keys = json.dumps(sessions)
    db.execute(
        "DELETE FROM digests WHERE part IN (SELECT DISTINCT part FROM digests)"
        " AND session_id IN (SELECT value FROM json_each(?))",
        (keys,),
    )
    db.executemany(
        "INSERT INTO digests (part, session_id, data) VALUES (?, ?, ?)",
        sorted(_made(db, sessions)),
    )
    db.execute(
        "DELETE FROM undigested WHERE session_id IN (SELECT value FROM json_each(?))", (keys,)
    )


def _made(db: apsw.Connection, sessions: list[SessionId]) -> Iterator[tuple[str, int, str]]:
    asked = Stats(only=sessions)
    for count in _counts():
        for session, adds in count(db, asked):
            for part, data in adds.items():
                yield part, session, json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def _extents(db: apsw.Connection, asked: Stats) -> Counted:
    ends = ", ".join(
        f"(SELECT {end}(ts) FROM {table} WHERE session_id = value)"
        for end in ("min", "max")
        for table in ("events", "usage")
    )
    undated = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE session_id = value AND ts IS NULL)"
        for table in ("events", "usage")
    )
    for session, *times, timeless in db.execute(
        f"SELECT value, {ends}, {undated} FROM json_each(?)", (json.dumps(asked.only),)
    ):
        dated = [ts for ts in times if ts is not None]
        if dated or timeless:
            extent = [min(dated, default=None), max(dated, default=None), timeless]
            yield session, {parts.EXTENT: extent}


def _counts() -> tuple[Count, ...]:
    """Of all views: a pass that makes no digests does not load them."""
    from sess_schema.queries.views import failures, files, tools, usage, windows

    return (
        _extents,
        tools.calls_by_session,
        failures.by_session,
        files.files_by_session,
        files.edits_and_turns,
        usage.context_by_session,
        tools.speeds_by_session,
        windows.windows_by_session,
        usage.expired_by_session,
    )
