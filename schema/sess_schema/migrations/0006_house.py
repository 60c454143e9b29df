"""Sums prompts, calls and times again, by the definitions of this version.

Frozen with its migration: it imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

_IDLE = 5 * 60 * 1000
_NEAR = 2000
_EVENTS = """
INSERT INTO event_sums (quarter, session_id, tool, prompts, calls, errors, denied)
SELECT iif(e.ts >= 0, e.ts / 900000, -1), e.session_id,
    iif(e.type = 'tool_use', coalesce(e.tool, 'unknown'), ''),
    sum(e.type = 'user' AND s.kind IS NOT 'subagent'), sum(e.type = 'tool_use'),
    sum(e.type = 'tool_use' AND e.status IS 'error'),
    sum(e.type = 'tool_use' AND e.status IS 'denied')
FROM events e JOIN sessions s ON s.id = e.session_id
WHERE (e.type = 'tool_use' OR (e.type = 'user' AND s.kind IS NOT 'subagent'))
    AND e.retired = 0 AND e.unjoined IS NULL
GROUP BY 1, 2, 3
"""
_SPANS = f"""
INSERT INTO spans (quarter, session_id, first_ts, last_ts, active_ms, user_ms, prompted, chars)
SELECT quarter, session_id, min(ts), max(ts), coalesce(sum(min(gap, {_IDLE})), 0),
    coalesce(sum(min(gap, {_IDLE})) FILTER (WHERE prompted), 0),
    max(prompted) FILTER (WHERE gap IS NULL), sum(chars)
FROM (
    SELECT quarter, session_id, ts, chars,
        coalesce(next % 2 AND next / 2 - ts <= {_NEAR}, 0) AS prompted,
        ts - lag(ts) OVER (PARTITION BY session_id, quarter ORDER BY ts) AS gap
    FROM (
        SELECT ts / 900000 AS quarter, session_id, ts, chars,
            min(iif(said, 2 * ts + prompted, NULL))
                OVER (PARTITION BY session_id ORDER BY ts DESC) AS next
        FROM (
            SELECT session_id, ts, max(said) AS said, max(prompted) AS prompted,
                sum(chars) AS chars
            FROM (
                SELECT e.session_id, e.ts, e.type NOT IN ('system', 'summary') AS said,
                    e.type = 'user' AND s.kind IS NOT 'subagent' AS prompted, e.chars
                FROM events e JOIN sessions s ON s.id = e.session_id
                WHERE e.retired = 0 AND e.ts >= 0
                UNION ALL
                SELECT e.session_id, e.answered, 1, 0, 0 FROM events e
                WHERE e.retired = 0 AND e.answered >= 0
            )
            GROUP BY 1, 2
        )
    )
)
GROUP BY quarter, session_id
"""
_UNDATED = """
INSERT INTO spans (quarter, session_id, first_ts, last_ts, active_ms, user_ms, prompted, chars)
SELECT -1, session_id, NULL, NULL, 0, 0, 0, sum(chars) FROM events
WHERE retired = 0 AND (ts IS NULL OR ts < 0) GROUP BY session_id
"""


def apply(db: apsw.Connection, progress: Callable[[int, int], None]) -> None:
    steps = ("DELETE FROM event_sums", "DELETE FROM spans", _EVENTS, _SPANS, _UNDATED)
    for number, sql in enumerate(steps):
        progress(number, len(steps))
        db.execute(sql)
