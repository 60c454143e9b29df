"""The numbers of a session: one definition for everything that prints them.

docs/numbers.md gives the same definitions in words. A session's numbers cover what it shows:
records shared with the session it was forked from count in both. Totals over several sessions
(`queries.stats`) count everything once, in the session that had it first.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from sess_common.classes import dataclass, replace
from sess_schema import shown, sums
from sess_schema.ids import EventId, SessionId
from sess_schema.queries import quarters, sessions, stats
from sess_schema.queries.sessions import SessionRow
from sess_schema.queries.stats import Stats, Worktime
from sess_schema.sums import USAGE_COUNTS, Tally


@dataclass(slots=True, frozen=True)
class Numbers:
    """One session's numbers: the total includes subagents; events and times do not."""

    total: Tally
    events: int
    duration_ms: int
    active_ms: int
    user_ms: int  # the active time that ended with a prompt

    @property
    def prompts(self) -> int:
        return self.total.prompts

    @property
    def calls(self) -> int:
        return self.total.tool_calls

    @property
    def failed(self) -> int:
        return self.total.tool_errors

    @property
    def denied(self) -> int:
        """Not counted as failed."""
        return self.total.tool_denied

    @property
    def agent_ms(self) -> int:
        return self.active_ms - self.user_ms


def of(db: apsw.Connection, row: SessionRow, asked: Stats | None = None) -> Numbers:
    """The numbers of a session, limited to the window of `asked`."""
    asked = asked or Stats(session=row.key)
    spent = stats.read_worktime(db, asked)
    duration, events = row.duration_ms, row.events
    if asked.since is not None or asked.until is not None:
        duration, events = _inside(db, row, asked)
    return _made(asked.total(db), events, duration, (spent.active, spent.user))


def worktime_of(
    db: apsw.Connection, asked: Stats, reader: quarters.Reader | None = None
) -> Worktime:
    """The time that everything selected took; for one session, its own."""
    spent = stats.read_worktime(db, asked, reader)
    if asked.session is None:
        return spent
    own = of(db, sessions.by_key(db, asked.session), asked)
    return replace(spent, active=own.active_ms, user=own.user_ms)


def _made(total: Tally, events: int, duration: int, spent: tuple[int, int]) -> Numbers:
    # An undated event gets its conversation's time, which may lie outside the duration.
    active = min(spent[0], duration)
    return Numbers(total, events, duration, active, min(spent[1], active))


def of_many(db: apsw.Connection, rows: Sequence[SessionRow]) -> dict[SessionId, Numbers]:
    """The same for many sessions, by key, from the sums the writer keeps."""
    families = _families(db, [row.key for row in rows])
    members = json.dumps(sorted({key for family in families.values() for key in family}))
    totals = _totals(db, members)
    copied = _copied(db, members)
    times = _times(db, [row.key for row in rows])
    numbers = {}
    for row in rows:
        total, family = Tally(), families[row.key]
        shared: dict[EventId, tuple[SessionId, Tally]] = {}
        for key in family:
            total.add(totals.get(key, Tally()))
            shared.update(copied.get(key, {}))
        for owner, one in shared.values():
            if owner not in family:
                total.add(one)
        numbers[row.key] = _made(total, row.events, row.duration_ms, times.get(row.key, (0, 0)))
    return numbers


def _totals(db: apsw.Connection, members: str) -> dict[SessionId, Tally]:
    """By session: what it had first, and its usage."""
    inside = "WHERE session_id IN (SELECT value FROM json_each(?)) GROUP BY session_id"
    totals: dict[SessionId, Tally] = defaultdict(Tally)
    for key, prompts, calls, failed, denied in db.execute(
        "SELECT session_id, sum(prompts), sum(calls), sum(errors), sum(denied) FROM event_sums"
        f" {inside}",
        (members,),
    ):
        totals[key].add(
            Tally(prompts=prompts, tool_calls=calls, tool_errors=failed, tool_denied=denied)
        )
    spent = ", ".join(f"sum({name})" for name in USAGE_COUNTS)
    for key, *sums_ in db.execute(
        f"SELECT session_id, {spent} FROM usage_sums {inside}", (members,)
    ):
        totals[key].add(Tally(*sums_))
    return totals


def _inside(db: apsw.Connection, row: SessionRow, asked: Stats) -> tuple[int, int]:
    """Duration and number of the events that a session shows in a window."""
    found: tuple[Any, ...] = db.execute(
        f"SELECT min(e.ts), max(max(e.ts), coalesce(max(e.answered), 0)), count(*) FROM events e"
        f" WHERE e.id IN ({shown.IDS}) AND e.ts >= ? AND e.ts < ?",
        (row.key, asked.since or 0, asked.until if asked.until is not None else 1 << 62),
    ).fetchone() or (None, None, 0)
    first, last, events = found
    if first is None:
        return 0, events
    until = last if asked.until is None else min(last, asked.until)
    return max(0, until - first), events


def _families(db: apsw.Connection, keys: list[SessionId]) -> dict[SessionId, set[SessionId]]:
    """Each session with its subagents and theirs."""
    families: dict[SessionId, set[SessionId]] = defaultdict(set)
    for root, key in db.execute(
        "WITH RECURSIVE family (root, id) AS (SELECT value, value FROM json_each(?) UNION"
        " SELECT f.root, s.id FROM sessions s JOIN family f ON s.parent_id = f.id)"
        " SELECT root, id FROM family",
        (json.dumps(keys),),
    ):
        families[root].add(key)
    return families


def _copied(
    db: apsw.Connection, members: str
) -> dict[SessionId, dict[EventId, tuple[SessionId, Tally]]]:
    """By session and event, the prompts and calls another session had first, and that session."""
    copied: dict[SessionId, dict[EventId, tuple[SessionId, Tally]]] = defaultdict(dict)
    for session, event, owner, prompt, call, failed, denied in db.execute(
        f"SELECT t.session_id, e.id, e.session_id, {sums.PROMPT}, e.type = 'tool_use',"
        " e.status IS 'error', e.status IS 'denied' FROM records t JOIN events e"
        " ON e.record_id = t.copy_of JOIN sessions s ON s.id = t.session_id"
        f" WHERE t.copy_of IS NOT NULL AND {shown.CURRENT} AND {sums.COUNTED_EVENTS}"
        " AND t.session_id IN (SELECT value FROM json_each(?)) AND e.session_id <> t.session_id",
        (members,),
    ):
        tally = Tally(prompts=prompt, tool_calls=call, tool_errors=failed, tool_denied=denied)
        copied[session][event] = (owner, tally)
    return copied


def _times(db: apsw.Connection, keys: list[SessionId]) -> dict[SessionId, tuple[int, int]]:
    """Active time and the person's share of it."""
    forks = quarters.forks(db, keys)
    rows: list[Any] = db.execute(
        "SELECT session_id, first_ts, last_ts, active_ms, user_ms, prompted FROM spans"
        f" WHERE quarter <> {sums.UNDATED} AND session_id IN (SELECT value FROM json_each(?))"
        " ORDER BY 1, 2",
        (json.dumps([key for key in keys if key not in forks]),),
    ).fetchall()
    for key in forks:
        rows += sums.summed_moments(key, quarters.moments_shown(db, key))
    return _added(sums.joined_spans(rows))


def _added(spans: Iterable[sums.Span]) -> dict[SessionId, tuple[int, int]]:
    times: dict[SessionId, tuple[int, int]] = {}
    for span in spans:
        active, user = times.get(span.session, (0, 0))
        times[span.session] = (active + span.active, user + span.user)
    return times
