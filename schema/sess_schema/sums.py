"""Sums per quarter of an hour and session: stored by the writer, read by statistics.

Every time zone is a whole number of quarters from UTC, so days can be summed in any of them.
Writer and readers share this SQL, and how the moments of a session add up to active time: what the
writer stores is what a reader would count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import add
from typing import Any, NamedTuple

import apsw

from sess_common.classes import dataclass, field
from sess_schema import labels
from sess_schema.ids import SessionId

QUARTER = 15 * 60 * 1000
IDLE = 5 * 60 * 1000  # longer gaps count as this much
NEAR = 2000  # notices this close before a prompt came with it

UNDATED = -1
CHARS_PER_TOKEN = 4
# A response whose last line is missing: no stop reason, and an impossibly low count.
_MOST_PLACEHELD = 8
_LEAST_LOGGED = 100
PLACEHOLDER = (
    f"(u.stop_reason IS NULL AND u.output_tokens <= {_MOST_PLACEHELD}"
    f" AND u.chars >= {_LEAST_LOGGED})"
)
MODEL = "coalesce(u.model, 'unknown')"
# Results without a call are events, but not calls.
CALLED = "e.unjoined IS NULL"
TOOL = "iif(e.type = 'tool_use', coalesce(e.tool, 'unknown'), '')"

USAGE_SUMS = (
    "sum(u.input_tokens), sum(u.output_tokens), sum(u.cache_write_tokens),"
    " sum(u.cache_write_1h_tokens), sum(u.cache_read_tokens), coalesce(sum(u.cost_nano), 0),"
    " sum(u.cost_nano IS NULL), count(*), coalesce(sum(u.saved_nano), 0),"
    f" sum({PLACEHOLDER}), coalesce(sum(u.chars) FILTER (WHERE {PLACEHOLDER}), 0),"
    " sum(u.reasoning_tokens)"
)
# Over `events e JOIN sessions s`. What a subagent is asked is not a prompt.
PROMPT = "e.type = 'user' AND s.kind IS NOT 'subagent'"
# While the agent works on, nobody waits for the next prompt.
WAITED_FOR = f"{PROMPT} AND e.label IS NOT '{labels.QUEUED}'"
EVENT_SUMS = (
    f"sum({PROMPT}), sum(e.type = 'tool_use'),"
    " sum(e.type = 'tool_use' AND e.status IS 'error'),"
    " sum(e.type = 'tool_use' AND e.status IS 'denied')"
)
# Notices and summaries are neither work nor waiting.
SAID = "e.type NOT IN ('system', 'summary')"
COUNTED_EVENTS = f"(e.type = 'tool_use' OR {PROMPT}) AND e.retired = 0 AND {CALLED}"

USAGE_COUNTS = (
    "input_tokens", "output_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "cache_read_tokens", "cost_nano", "unpriced", "requests", "saved_nano", "placeholders",
    "placeholder_chars", "reasoning_tokens",
)  # fmt: skip
EVENT_COUNTS = ("prompts", "tool_calls", "tool_errors", "tool_denied")
COUNTS = (*USAGE_COUNTS, *EVENT_COUNTS)
_NO_COUNTS = (0,) * len(COUNTS)

# Session, first and last moment, active time, the share before prompts, starts with a prompt.
Summed = tuple[SessionId, int, int, int, int, bool]


class Moment(NamedTuple):
    """The time of an event or of a result."""

    ts: int
    said: bool  # not a notice
    prompted: bool


class Span(NamedTuple):
    """A session's activity in one quarter of an hour."""

    session: SessionId
    first: int
    last: int
    inside: int  # between its moments, each gap capped at five minutes
    waited: int  # of that, before prompts
    prompted: bool  # starts with a prompt
    before: int  # the uncapped gap since the previous span; 0 for the first

    @property
    def active(self) -> int:
        return self.inside + min(self.before, IDLE)

    @property
    def user(self) -> int:
        return self.waited + (min(self.before, IDLE) if self.prompted else 0)


# -- moments, the gaps between them, and who spent each gap


def summed_moments(session: SessionId, moments: Iterable[Moment]) -> Iterator[Summed]:
    """Sums by quarter of an hour, as the writer stores them and readers compute them."""
    for _, group in groupby(_marked(moments), key=lambda moment: moment[0] // QUARTER):
        marked = [*group]
        gaps = [(min(b - a, IDLE), prompted) for (a, _), (b, prompted) in pairwise(marked)]
        yield (
            session, marked[0][0], marked[-1][0], sum(gap for gap, _ in gaps),
            sum(gap for gap, prompted in gaps if prompted), marked[0][1],
        )  # fmt: skip


def _marked(moments: Iterable[Moment]) -> list[tuple[int, bool]]:
    """Each moment once, in order, and whether it belongs to a prompt.

    Notices just before a prompt came with it: the wait before them was the person's.
    """
    merged: dict[int, tuple[bool, bool]] = {}
    for ts, said, prompted in moments:
        before = merged.get(ts, (False, False))
        merged[ts] = (before[0] or bool(said), before[1] or bool(prompted))
    marked: list[tuple[int, bool]] = []
    next_ts, next_prompted = 0, False
    for ts in sorted(merged, reverse=True):
        said, prompted = merged[ts]
        if said:
            next_ts, next_prompted = ts, prompted
        marked.append((ts, next_prompted and next_ts - ts <= NEAR))
    return marked[::-1]


def moments_of(rows: Iterable[tuple[Any, ...]]) -> Iterator[Moment]:
    """From rows of `ts`, `SAID`, `WAITED_FOR` and `answered`."""
    for ts, said, prompted, answered in rows:
        if ts is not None and ts >= 0:
            yield Moment(ts, said, prompted)
        if answered is not None and answered >= 0:
            yield Moment(answered, said=True, prompted=False)


def joined_spans(rows: Sequence[Summed]) -> Iterator[Span]:
    """Each span with the gap before it; rows are sorted by session and time."""
    for number, (session, first, last, inside, waited, prompted) in enumerate(rows):
        same = number > 0 and rows[number - 1][0] == session
        before = first - rows[number - 1][2] if same else 0
        yield Span(session, first, last, inside, waited, bool(prompted), before)


# -- what is stored


def is_model(model: str | None, names: Iterable[str]) -> bool:
    """Whether one of the names is part of the model's."""
    return any(name.lower() in (model or "").lower() for name in names)


def quarter(ts: str) -> str:
    return f"iif({ts} >= 0, {ts} / {QUARTER}, {UNDATED})"


def note_events(db: apsw.Connection, added: Iterable[tuple[int, int | None, int | None]]) -> None:
    """Mark the sums that new events, given as (session, time, answered), make stale.

    Triggers do so where events change or go; for each of a million new ones they cost too much.
    """
    stale: set[tuple[int, int]] = set()
    for session, ts, answered in added:
        at = UNDATED if ts is None else ts // QUARTER
        stale.add((session, at))
        if ts is not None and ts % QUARTER < NEAR:  # the quarter before is summed up to here
            stale.add((session, (ts - NEAR) // QUARTER))
        if answered is not None:
            stale.add((session, answered // QUARTER))
            stale.add((session, (answered - NEAR) // QUARTER))
    _note(db, stale)


def note_usage(db: apsw.Connection, added: Iterable[tuple[int, int | None]]) -> None:
    """Mark the sums that new responses, given as (session, time), make stale."""
    _note(db, {(session, UNDATED if ts is None else ts // QUARTER) for session, ts in added})


def _note(db: apsw.Connection, stale: set[tuple[int, int]]) -> None:
    if stale:
        db.executemany(
            "INSERT OR IGNORE INTO stale_sums (session_id, quarter) VALUES (?, max(?, -1))", stale
        )


def renew(db: apsw.Connection) -> None:
    """Recompute the sums that this transaction made stale."""
    stale: list[Any] = db.execute("SELECT session_id, quarter FROM stale_sums").fetchall()
    if not stale:
        return
    db.execute("INSERT OR IGNORE INTO undigested SELECT DISTINCT session_id FROM stale_sums")
    keys = [{"session": session, "quarter": at} for session, at in stale]
    dated = [key for key in keys if key["quarter"] != UNDATED]
    undated = [key for key in keys if key["quarter"] == UNDATED]
    for table in ("usage_sums", "event_sums", "spans"):
        db.executemany(
            f"DELETE FROM {table} WHERE session_id = :session AND quarter = :quarter", keys
        )
    for insert in (_USAGE, _EVENTS):
        db.executemany(insert.format(_WITHIN), dated)
        db.executemany(insert.format(_UNDATED), undated)
    db.executemany(_SPANS, [span for key in dated for span in _spans(db, key)])
    db.executemany(_UNDATED_SPANS, undated)
    db.execute("DELETE FROM stale_sums")


def _spans(db: apsw.Connection, key: dict[str, int]) -> Iterator[tuple[object, ...]]:
    """The span of one quarter, if it has any events."""
    begin, end = key["quarter"] * QUARTER, (key["quarter"] + 1) * QUARTER
    rows: list[Any] = db.execute(_MOMENTS, key).fetchall()
    moments = moments_of(row[:4] for row in rows)
    near = (moment for moment in moments if begin <= moment.ts < end + NEAR)
    for session, first, *summed in summed_moments(SessionId(key["session"]), near):
        if first < end:
            chars = sum(row[4] for row in rows if row[0] is not None and row[0] < end)
            yield key["quarter"], session, first, *summed, chars


_BEGIN, _END = f":quarter * {QUARTER}", f"(:quarter + 1) * {QUARTER}"
_WITHIN = f"ts >= {_BEGIN} AND ts < {_END}"
_UNDATED = "(ts IS NULL OR ts < 0)"
_USAGE = (
    f"INSERT INTO usage_sums SELECT :quarter, :session, {MODEL}, {USAGE_SUMS} FROM usage u"
    " WHERE u.session_id = :session AND {} AND u.counted GROUP BY 3"
)
_EVENTS = (
    f"INSERT INTO event_sums SELECT :quarter, :session, {TOOL}, {EVENT_SUMS} FROM events e"
    f" JOIN sessions s ON s.id = e.session_id WHERE e.session_id = :session AND {{}}"
    f" AND {COUNTED_EVENTS} GROUP BY 3"
)
# Includes the start of the next quarter: a prompt there claims the last notices of this one.
_LATER = f"({_END} + {NEAR})"
_ELSEWHERE = f"e.answered IS NOT NULL AND e.answered / {QUARTER} IS NOT e.ts / {QUARTER}"
_MOMENTS = (
    f"SELECT e.ts, {SAID}, {WAITED_FOR}, e.answered, e.chars FROM events e"
    " JOIN sessions s ON s.id = e.session_id"
    f" WHERE e.session_id = :session AND e.ts >= {_BEGIN} AND e.ts < {_LATER} AND e.retired = 0"
    f" UNION ALL SELECT NULL, 0, 0, e.answered, 0 FROM events e WHERE {_ELSEWHERE}"
    f" AND e.session_id = :session AND e.answered >= {_BEGIN} AND e.answered < {_LATER}"
    " AND e.retired = 0"
)
_SPANS = (
    "INSERT INTO spans (quarter, session_id, first_ts, last_ts, active_ms, user_ms, prompted,"
    " chars) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_UNDATED_SPANS = (
    "INSERT INTO spans SELECT :quarter, :session, NULL, NULL, 0, 0, 0, sum(e.chars) FROM events e"
    f" WHERE e.session_id = :session AND {_UNDATED} AND e.retired = 0 HAVING count(*) > 0"
)


def renew_all(db: apsw.Connection) -> None:
    """Sum up everything again."""
    for table in ("usage_sums", "event_sums", "spans"):
        db.execute(f"DELETE FROM {table}")
    db.execute(
        "INSERT OR IGNORE INTO stale_sums (session_id, quarter)"
        f" SELECT session_id, {quarter('ts')} FROM events"
        f" UNION SELECT session_id, {quarter('answered')} FROM events"
        f" UNION SELECT session_id, {quarter('ts')} FROM usage"
    )
    renew(db)


def differences(db: apsw.Connection) -> dict[str, int]:
    """By table: how many stored sums are wrong, missing or too many."""
    counted = {
        "usage_sums": f"SELECT {quarter('u.ts')}, u.session_id, {MODEL}, {USAGE_SUMS}"
        " FROM usage u WHERE u.counted GROUP BY 1, 2, 3",
        "event_sums": f"SELECT {quarter('e.ts')}, e.session_id, {TOOL}, {EVENT_SUMS}"
        " FROM events e JOIN sessions s ON s.id = e.session_id"
        f" WHERE {COUNTED_EVENTS} GROUP BY 1, 2, 3",
    }
    wrong = {}
    for table, anew in counted.items():
        sides = (f"{anew} EXCEPT SELECT * FROM {table}", f"SELECT * FROM {table} EXCEPT {anew}")
        counts = [db.execute(f"SELECT count(*) FROM ({side})").get for side in sides]
        wrong[table] = max(int(count or 0) for count in counts)
    wrong["spans"] = _wrong_spans(db)
    return wrong


def _wrong_spans(db: apsw.Connection) -> int:
    wrong = 0
    keys: list[Any] = db.execute(
        f"SELECT session_id, {quarter('ts')} FROM events WHERE retired = 0"
        f" UNION SELECT session_id, quarter FROM spans"
    ).fetchall()
    for session, at in keys:
        if at == UNDATED:
            continue
        stored = db.execute(
            "SELECT quarter, session_id, first_ts, last_ts, active_ms, user_ms, prompted, chars"
            " FROM spans WHERE session_id = ? AND quarter = ?",
            (session, at),
        ).fetchall()
        wrong += stored != list(_spans(db, {"session": session, "quarter": at}))
    return wrong


# -- the sums of a group


@dataclass(slots=True)
class Tally:
    """The sums of one group; integers are exact."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    cost_nano: int = 0
    unpriced: int = 0  # responses without a known price, excluded from cost totals
    requests: int = 0
    saved_nano: int = 0  # by the cache
    placeholders: int = 0  # responses whose final output count was never logged
    placeholder_chars: int = 0
    reasoning_tokens: int = 0  # part of output_tokens
    prompts: int = 0
    tool_calls: int = 0
    tool_errors: int = 0  # failed
    tool_denied: int = 0  # refused by a person or a rule, not counted as failed
    sessions: set[SessionId] = field(default_factory=set)  # their roots, if they are listed
    others: set[SessionId] = field(default_factory=set)  # their roots, if they are not

    def add(self, other: Tally) -> None:
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sessions |= other.sessions
        self.others |= other.others

    @property
    def tokens(self) -> int:
        written = self.cache_write_tokens + self.cache_read_tokens
        return self.input_tokens + self.output_tokens + written


class Sum:
    """A tally in the making: there are very many rows to add."""

    __slots__ = ("counts", "sessions")

    def __init__(self) -> None:
        self.counts: Sequence[int] = _NO_COUNTS
        self.sessions = set[SessionId]()

    def add(self, counts: Sequence[int], root: SessionId | None) -> None:
        """`root`: the session to count, if it counts."""
        self.counts = [*map(add, self.counts, counts)]
        if root is not None:
            self.sessions.add(root)

    def include(self, other: Sum) -> None:
        self.counts = [*map(add, self.counts, other.counts)]
        self.sessions |= other.sessions

    def tally(self, listed: set[SessionId]) -> Tally:
        counts: dict[str, Any] = dict(zip(COUNTS, self.counts, strict=True))
        return Tally(**counts, sessions=self.sessions & listed, others=self.sessions - listed)
