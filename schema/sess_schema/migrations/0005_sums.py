"""Sums everything that was written before this version.

Frozen with its migration: the sums as they were defined then, which imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

_IDLE = 5 * 60 * 1000
_QUARTER = "iif({0}.ts >= 0, {0}.ts / 900000, -1)"
_UNFINISHED = "(u.stop_reason IS NULL AND u.output_tokens <= 8 AND u.chars >= 100)"
_USAGE = f"""
INSERT INTO usage_sums (
    quarter, session_id, model, input_tokens, output_tokens, cache_write_tokens,
    cache_write_1h_tokens, cache_read_tokens, cost_nano, unpriced, requests, saved_nano,
    placeholders, placeholder_chars
)
SELECT {_QUARTER.format("u")}, u.session_id, coalesce(u.model, 'unknown'),
    sum(u.input_tokens), sum(u.output_tokens), sum(u.cache_write_tokens),
    sum(u.cache_write_1h_tokens), sum(u.cache_read_tokens), coalesce(sum(u.cost_nano), 0),
    sum(u.cost_nano IS NULL), count(*), coalesce(sum(u.saved_nano), 0),
    sum({_UNFINISHED}), coalesce(sum(u.chars) FILTER (WHERE {_UNFINISHED}), 0)
FROM usage u WHERE u.counted GROUP BY 1, 2, 3
"""
_EVENTS = f"""
INSERT INTO event_sums (quarter, session_id, tool, prompts, calls, errors)
SELECT {_QUARTER.format("e")}, e.session_id,
    iif(e.type = 'tool_use', coalesce(e.tool, 'unknown'), ''),
    sum(e.type = 'user'), sum(e.type = 'tool_use'),
    sum(e.type = 'tool_use' AND e.status IS 'error')
FROM events e
WHERE e.type IN ('user', 'tool_use') AND e.retired = 0
    AND e.label IS NOT 'answer' AND e.label IS NOT 'orphan'
GROUP BY 1, 2, 3
"""
_SPANS = f"""
INSERT INTO spans (
    quarter, session_id, first_ts, last_ts, active_ms, user_ms, prompted, chars
)
SELECT quarter, session_id, min(ts), max(ts), coalesce(sum(min(gap, {_IDLE})), 0),
    coalesce(sum(min(gap, {_IDLE})) FILTER (WHERE prompted), 0),
    max(prompted) FILTER (WHERE gap IS NULL), sum(chars)
FROM (
    SELECT quarter, session_id, ts, prompted, chars,
        ts - lag(ts) OVER (PARTITION BY session_id, quarter ORDER BY ts) AS gap
    FROM (
        SELECT {_QUARTER.format("e")} AS quarter, e.session_id, e.ts,
            max(e.type = 'user') AS prompted, sum(e.chars) AS chars
        FROM events e WHERE e.retired = 0 GROUP BY 1, 2, 3
    )
)
GROUP BY quarter, session_id
"""


def apply(db: apsw.Connection, progress: Callable[[int, int], None]) -> None:
    steps = (_USAGE, _EVENTS, _SPANS, "DELETE FROM stale_sums")
    for number, sql in enumerate(steps):
        progress(number, len(steps))
        db.execute(sql)
