"""Tokens, cost and activity, summed by any group, and how time was spent.

The writer keeps sums per quarter of an hour and session (`sess_schema.sums`), which are added up
here by group. Only quarters that a window cuts through are counted event by event.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import groupby, pairwise
from operator import itemgetter

import apsw

from sess_common.classes import dataclass
from sess_schema import shown, sums
from sess_schema.queries.quarters import NONE, PERIODS, Reader, Row, Selection
from sess_schema.sums import IDLE, QUARTER, Span, Sum, Tally

__all__ = ["GROUPS", "NONE", "SUBAGENTS", "Stats", "Tally", "percentile"]


GROUPS = (
    "day", "week", "month", "hour", "session", "project", "model", "agent", "tool", "branch",
    "file",
)  # fmt: skip
SUBAGENTS = ("include", "exclude", "only")


class Stats(Selection):
    """The sums of a selection."""

    def total(self, db: apsw.Connection) -> Tally:
        total = Tally()
        for tally in self.groups(db, "agent").values():
            total.add(tally)
        return total

    def groups(self, db: apsw.Connection, by: str) -> dict[str, Tally]:
        """The sums by group; they always add up to the total."""
        return {group: inner[""] for group, inner in self.table(db, by, "").items()}

    def table(self, db: apsw.Connection, by: str, then: str) -> dict[str, dict[str, Tally]]:
        """The sums by two groups, such as day and model."""
        reader = Reader(db, self, {by, then})
        sums_by: dict[str, dict[str, Sum]] = {}
        outer, inner = self.label(reader, by), self.label(reader, then)
        for row in reader.rows():
            group = sums_by.setdefault(outer(row), {})
            name = inner(row)
            if name not in group:
                group[name] = Sum()
            group[name].add(row.counts, row.root)
        return {
            group: {name: inner_sums[name].tally(reader.listed) for name in sorted(inner_sums)}
            for group, inner_sums in sorted(sums_by.items())
        }

    def condition(self, db: apsw.Connection, ts: str) -> tuple[str, tuple[object, ...]]:
        """SQL over `sessions s` and a time column, for other queries over the same selection."""
        return Reader(db, self).condition(ts)

    def events(self, db: apsw.Connection) -> str:
        """SQL joining `events e` to `sessions s`: the one that had it first, or that shows it."""
        if self.only is not None:
            return "sessions s CROSS JOIN events e ON e.session_id = s.id"
        if self.session is None:
            return "events e JOIN sessions s ON s.id = e.session_id"
        family = ", ".join(map(str, Reader(db, self).family))
        return (
            f"{shown.OF_SEVERAL.format(family)} k JOIN events e ON e.id = k.event"
            " JOIN sessions s ON s.id = k.session_id"
        )

    def active_ms(self, db: apsw.Connection) -> int:
        """The time between neighbouring moments of a session, each gap capped at five minutes."""
        return sum(span.active for span in Reader(db, self).spans())

    def estimated_tokens(self, db: apsw.Connection) -> int:
        """Output tokens where none were recorded, at four characters per token.

        For sessions without any count, and responses whose final count was never logged. An
        estimate: no other sum includes it.
        """
        written = Reader(db, self).unrecorded_chars() + self.total(db).placeholder_chars
        return written // sums.CHARS_PER_TOKEN

    def label(self, reader: Reader, by: str) -> Callable[[Row], str]:
        """Returns the function that names the group of a row."""
        of = reader.sessions
        if not by:
            return lambda _: ""
        if by in PERIODS:
            return lambda row: period(by, row.quarter, self.zone)
        if by in ("tool", "file"):
            return lambda row: row.kind or NONE
        if by == "model":
            return lambda row: row.model or NONE
        if by == "session":
            return lambda row: reader.names[of[row.session].root]
        if by == "agent":
            return lambda row: of[row.session].agent
        if by == "project":
            return lambda row: of[row.session].project
        return lambda row: of[row.session].branch


def percentile(ordered: Sequence[int], percent: int) -> int | None:
    """Nearest rank."""
    if not ordered:
        return None
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


@cache
def period(by: str, quarter: int, zone: tzinfo | None) -> str:
    if quarter == sums.UNDATED:
        return "undated"
    moment = datetime.fromtimestamp(quarter * QUARTER / 1000, UTC).astimezone(zone)
    if by == "hour":
        return f"{moment:%Y-%m-%d %H:00%z}"
    if by == "month":
        return f"{moment:%Y-%m}"
    if by == "week":  # begins on Monday
        moment -= timedelta(days=moment.weekday())
    return f"{moment:%Y-%m-%d}"


# -- how time was spent: by agents, by people, and how many sessions ran at once

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


def read_worktime(db: apsw.Connection, asked: Stats, reader: Reader | None = None) -> Worktime:
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
    possible = [*_counts((root[span.session], _begun(span), span.last) for span in spans)]
    unbroken = [
        (root[span.session], _begun(span), span.last) for span in spans if not _has_pauses(span)
    ]
    least = _most(unbroken)
    moments = [moment for moment, _ in possible]
    pieces: list[Active] = []
    for span in filter(_has_pauses, spans):
        first = max(0, bisect_left(moments, _begun(span)) - 1)
        last = bisect_right(moments, span.last)
        if max(count for _, count in possible[first:last]) > least:
            pieces += ((root[span.session], *piece) for piece in _pieces(db, span))
    return _most(unbroken + pieces) if pieces else least


def _has_pauses(span: Span) -> bool:
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
    for moment, following in pairwise(times):
        if following - moment > IDLE:
            yield begun, moment
            begun = following
    yield begun, span.last


def _most(active: Iterable[Active]) -> int:
    return max((count for _, count in _counts(active)), default=0)


def _counts(active: Iterable[Active]) -> Iterator[tuple[int, int]]:
    """The number of active sessions at each moment where it changes."""
    changes: list[tuple[int, int]] = []
    for _, intervals in groupby(sorted(active), key=itemgetter(0)):
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
