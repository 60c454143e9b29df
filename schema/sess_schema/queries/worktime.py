"""How time was spent: by agents, by people, and how many sessions ran at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

import apsw

from sess_common.classes import dataclass
from sess_schema.moments import IDLE, Span
from sess_schema.queries.quarters import Reader
from sess_schema.queries.stats import Stats

Active = tuple[int, int, int]  # session, start, end


@dataclass(slots=True, frozen=True)
class Worktime:
    """In milliseconds. A gap between two moments is a person's if it ends with a prompt."""

    active: int = 0
    user: int = 0
    concurrency: int = 0  # the most sessions active at the same time

    @property
    def agent(self) -> int:
        return self.active - self.user


def read(db: apsw.Connection, asked: Stats, reader: Reader | None = None) -> Worktime:
    reader = reader or Reader(db, asked)
    spans = reader.spans()
    if not spans:
        return Worktime()
    return Worktime(
        sum(span.active for span in spans),
        sum(span.user for span in spans),
        _concurrency(db, reader, spans),
    )


def _concurrency(db: apsw.Connection, reader: Reader, spans: list[Span]) -> int:
    """The most sessions active at one moment, including subagents.

    Most spans are active from end to end and give a lower bound. Where no higher number is
    possible, the pauses of the other spans need not be read.
    """
    root = {key: session.root for key, session in reader.sessions.items()}
    all_ = [(root[span.session], _begun(span), span.last) for span in spans]
    whole = [one for one, span in zip(all_, spans, strict=True) if not _rested(span)]
    least = max((count for _, count in _counts(whole)), default=0)
    possible = [*_counts(all_)]
    moments = [moment for moment, _ in possible]
    known = len(whole)
    for span in filter(_rested, spans):
        first = max(0, bisect_left(moments, _begun(span)) - 1)
        last = bisect_right(moments, span.last)
        if max(count for _, count in possible[first:last]) > least:
            whole += ((root[span.session], *piece) for piece in _pieces(db, span))
    if len(whole) == known:
        return least
    return max((count for _, count in _counts(whole)), default=0)


def _rested(span: Span) -> bool:
    return span.inside < span.last - span.first


def _begun(span: Span) -> int:
    """The start, including the gap before it if that was not a pause."""
    return span.first - span.before if span.before <= IDLE else span.first


def _pieces(db: apsw.Connection, span: Span) -> Iterator[tuple[int, int]]:
    """A span without its pauses."""
    times = [
        ts
        for (ts,) in db.execute(
            "SELECT ts FROM events WHERE session_id = ?1 AND ts BETWEEN ?2 AND ?3 AND retired = 0"
            " UNION SELECT answered FROM events WHERE session_id = ?1 AND ts <= ?3"
            " AND answered BETWEEN ?2 AND ?3 AND retired = 0 ORDER BY 1",
            (span.session, span.first, span.last),
        )
    ]
    begun = _begun(span)
    for one, other in pairwise(times):
        if other - one > IDLE:
            yield begun, one
            begun = other
    yield begun, span.last


def _counts(active: Iterable[Active]) -> Iterator[tuple[int, int]]:
    """The number of active sessions at each moment where it changes."""
    changes: list[tuple[int, int]] = []
    for _, intervals in groupby(sorted(active), key=lambda one: one[0]):
        ended: int | None = None
        for _, first, last in intervals:
            if ended is None or first > ended:
                changes.append((first, 0))
                if ended is not None:
                    changes.append((ended, 1))
            ended = last if ended is None else max(ended, last)
        if ended is not None:
            changes.append((ended, 1))
    count = 0
    for moment, ends in sorted(changes):  # at the same moment, starts come first
        count += -1 if ends else 1
        yield moment, count
