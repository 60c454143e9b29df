"""Sums per quarter of an hour and session: kept by the writer, read by statistics.

Every zone of the world is a whole number of quarters from UTC, so that a day is a day in any of
them. The SQL is here once for both: what the writer keeps is what a reader would count.
"""

from __future__ import annotations

import apsw

QUARTER = 15 * 60 * 1000
UNDATED = -1
IDLE = 5 * 60 * 1000  # nobody works longer between two events
CHARS_PER_TOKEN = 4
# A response whose last line never came: no reason to stop, and a count that cannot be.
_MOST_PLACEHELD = 8
_LEAST_LOGGED = 100
PLACEHOLDER = (
    f"(u.stop_reason IS NULL AND u.output_tokens <= {_MOST_PLACEHELD}"
    f" AND u.chars >= {_LEAST_LOGGED})"
)
MODEL = "coalesce(u.model, 'unknown')"
# Results without a call are events of their own, but nobody called anything.
CALLED = "e.unjoined IS NULL"
TOOL = "iif(e.type = 'tool_use', coalesce(e.tool, 'unknown'), '')"

USAGE_SUMS = (
    "sum(u.input_tokens), sum(u.output_tokens), sum(u.cache_write_tokens),"
    " sum(u.cache_write_1h_tokens), sum(u.cache_read_tokens), coalesce(sum(u.cost_nano), 0),"
    " sum(u.cost_nano IS NULL), count(*), coalesce(sum(u.saved_nano), 0),"
    f" sum({PLACEHOLDER}), coalesce(sum(u.chars) FILTER (WHERE {PLACEHOLDER}), 0)"
)
EVENT_SUMS = (
    "sum(e.type = 'user'), sum(e.type = 'tool_use'),"
    " sum(e.type = 'tool_use' AND e.status IS 'error')"
)
COUNTED_EVENTS = f"e.type IN ('user', 'tool_use') AND e.retired = 0 AND {CALLED}"


def quarter(ts: str) -> str:
    return f"iif({ts} >= 0, {ts} / {QUARTER}, {UNDATED})"


def settle(db: apsw.Connection) -> None:
    """Sum again what changed in this transaction."""
    stale = db.execute("SELECT session_id, quarter FROM stale_sums").fetchall()
    if not stale:
        return
    for table, renew in _RENEW.items():
        db.executemany(f"DELETE FROM {table} WHERE session_id = ? AND quarter = ?", stale)
        for dated, within in _WITHIN.items():
            keys = [
                {"session": session, "quarter": at}
                for session, at in stale
                if (at != UNDATED) == dated
            ]
            db.executemany(renew.format(within), keys)
    db.execute("DELETE FROM stale_sums")


_WITHIN = {
    True: f"ts >= :quarter * {QUARTER} AND ts < (:quarter + 1) * {QUARTER}",
    False: "(ts IS NULL OR ts < 0)",
}
_RENEW = {
    "usage_sums": (
        f"INSERT INTO usage_sums SELECT :quarter, :session, {MODEL}, {USAGE_SUMS} FROM usage u"
        " WHERE u.session_id = :session AND {} AND u.counted GROUP BY 3"
    ),
    "event_sums": (
        f"INSERT INTO event_sums SELECT :quarter, :session, {TOOL}, {EVENT_SUMS} FROM events e"
        f" WHERE e.session_id = :session AND {{}} AND {COUNTED_EVENTS} GROUP BY 3"
    ),
    "spans": (
        "INSERT INTO spans SELECT :quarter, :session, min(ts), max(ts),"
        f" coalesce(sum(min(gap, {IDLE})), 0),"
        f" coalesce(sum(min(gap, {IDLE})) FILTER (WHERE prompted), 0),"
        " max(prompted) FILTER (WHERE gap IS NULL), sum(chars) FROM"
        " (SELECT ts, prompted, chars, ts - lag(ts) OVER (ORDER BY ts) AS gap FROM"
        " (SELECT e.ts, max(e.type = 'user') AS prompted, sum(e.chars) AS chars FROM events e"
        " WHERE e.session_id = :session AND {} AND e.retired = 0 GROUP BY e.ts))"
        " HAVING count(*) > 0"
    ),
}
