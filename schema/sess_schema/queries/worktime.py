"""Where the time went: the agents' and people's share of it, and how many sessions ran at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import apsw

from sess_schema import sums
from sess_schema.queries.quarters import Reader, Span
from sess_schema.queries.stats import Stats

Interval = tuple[int, int]


@dataclass(slots=True, frozen=True)
class Worktime:
    """In milliseconds. A gap between two events is a person's if a prompt ended it."""

    active: int
    user: int
    concurrency: int  # sessions that were active at the same time, at most

    @property
    def agent(self) -> int:
        return self.active - self.user


def read(db: apsw.Connection, asked: Stats, reader: Reader | None = None) -> Worktime:
    reader = reader or Reader(db, asked)
    spans = reader.spans()
    return Worktime(
        sum(span.active + span.before for span in spans),
        sum(min(gap, sums.IDLE) for gap in _before_prompts(db, asked, reader)),
        _most(_intervals(db, reader, spans)),
    )


def _before_prompts(db: apsw.Connection, asked: Stats, reader: Reader) -> Iterator[int]:
    """How long it was quiet before each prompt, within the window."""
    where, values = reader.condition("e.ts")
    for session, ts, before in db.execute(
        "SELECT DISTINCT e.session_id, e.ts, (SELECT b.ts FROM events b"
        " WHERE b.session_id = e.session_id AND b.ts < e.ts AND b.ts >= ? AND b.retired = 0"
        " ORDER BY b.ts DESC LIMIT 1) FROM events e JOIN sessions s ON s.id = e.session_id"
        f" WHERE {where} AND e.type = 'user' AND e.retired = 0 AND e.ts >= 0",
        (max(0, asked.since or 0), *values),
    ):
        if before is not None and reader.is_asked(session, ts // sums.QUARTER):
            yield ts - before


def _intervals(
    db: apsw.Connection, reader: Reader, spans: Iterable[Span]
) -> Iterator[tuple[int, Interval]]:
    """Of each session, subagents with it: from when to when it was active."""
    for session, group in groupby(spans, key=lambda span: span.session):
        root = reader.sessions[session].root
        begun = ended = None
        for span in group:
            for first, last in _pieces(db, span):
                if ended is not None and first - ended <= sums.IDLE:
                    ended = last
                    continue
                if begun is not None and ended is not None:
                    yield root, (begun, ended)
                begun, ended = first, last
        if begun is not None and ended is not None:
            yield root, (begun, ended)


def _pieces(db: apsw.Connection, span: Span) -> Iterator[Interval]:
    """A span without its rests; most have none, and are told by their ends."""
    if span.active == span.last - span.first:
        yield span.first, span.last
        return
    for (ts,) in db.execute(
        "SELECT ts FROM events WHERE session_id = ? AND ts BETWEEN ? AND ? AND retired = 0"
        " ORDER BY ts",
        (span.session, span.first, span.last),
    ):
        yield ts, ts


def _most(intervals: Iterable[tuple[int, Interval]]) -> int:
    """How many sessions' intervals have a moment in common."""
    changes: list[tuple[int, int]] = []
    for _, of_root in groupby(sorted(intervals), key=lambda one: one[0]):
        begun = ended = None
        for _, (first, last) in of_root:  # a session and its subagents are one
            if ended is not None and first <= ended:
                ended = max(ended, last)
                continue
            if begun is not None and ended is not None:
                changes += ((begun, 0), (ended, 1))
            begun, ended = first, last
        if begun is not None and ended is not None:
            changes += ((begun, 0), (ended, 1))
    most = open_ = 0
    for _, ends in sorted(changes):  # at the same moment, what begins comes first
        open_ += -1 if ends else 1
        most = max(most, open_)
    return most
