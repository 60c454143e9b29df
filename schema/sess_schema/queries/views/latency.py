"""How long people waited for a model's first words, and how fast the rest came."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

import apsw

from sess_schema import labels
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import parts, scope
from sess_schema.queries.views.parts import Counted, Packed
from sess_schema.sums import CALLED, MODEL

PART = "latency"
# The order of marks at the same moment: no answer is instant.
_TOLD, _ASKED = 0, 1

Answer = tuple[int, str, int | None]  # time, model, tokens if the count is final


@dataclass(slots=True)
class Speed:
    """The responses of one model."""

    waits: list[int] = field(default_factory=list)  # milliseconds to the first line, sorted
    rates: list[int] = field(default_factory=list)  # output tokens in 1,000 seconds, sorted
    output_tokens: int = 0  # of responses whose time is known
    taken: int = 0  # by those, in milliseconds

    @property
    def tokens_per_second(self) -> float | None:
        return 1000 * self.output_tokens / self.taken if self.taken else None


def models(db: apsw.Connection, asked: Stats) -> dict[str, Speed]:
    """By model, from a prompt or the last tool result to the first line of the answer."""
    found: defaultdict[str, Speed] = defaultdict(Speed)
    times: defaultdict[str, tuple[list[Packed], list[Packed]]] = defaultdict(lambda: ([], []))
    for _, each in parts.of(db, asked, PART, by_session):
        for model, waits, rates, tokens, taken in each:
            times[model][0].append(waits)
            times[model][1].append(rates)
            found[model].output_tokens += tokens
            found[model].taken += taken
    for model, lists in times.items():
        found[model].waits, found[model].rates = map(parts.unpacked, lists)
    return dict(sorted(found.items(), key=lambda one: (-len(one[1].waits), one[0])))


def by_session(db: apsw.Connection, asked: Stats) -> Counted:
    """Of each model: what `Speed` has."""
    wanted = scope.events(db, asked)  # first: it may need a function that no statement uses
    answers = _answers(db, asked)
    answered = next(answers, None)
    for session, marks in _marks(db, wanted):
        found: defaultdict[str, Speed] = defaultdict(Speed)
        while answered is not None and answered[0] < session:
            answered = next(answers, None)
        rows = answered[1] if answered is not None and answered[0] == session else []
        times = [row[0] for row in rows]
        # When the model was asked, and when its first line came.
        begun: list[int] = []
        since: int | None = None
        for mark in marks:
            ts = mark >> 1
            if mark & 1 == _ASKED:
                since = ts
            elif since is not None:
                at = min(bisect_left(times, ts), len(rows) - 1)
                if rows:
                    found[rows[at][1]].waits.append(ts - since)
                begun.append(since)
                since = None
        _add_rates(found, rows, begun)
        each = [
            [model, *map(parts.packed, (one.waits, one.rates)), one.output_tokens, one.taken]
            for model, one in sorted(found.items())
        ]
        if each:
            yield session, {PART: each}


def _add_rates(found: defaultdict[str, Speed], rows: list[Answer], begun: list[int]) -> None:
    """Add each complete answer that was the first after the model was asked."""
    used = -1
    for ts, model, tokens in rows:
        at = bisect_left(begun, ts) - 1
        if at <= used:
            continue
        used = at
        if tokens is None:
            continue
        speed = found[model]
        speed.output_tokens += tokens
        speed.taken += ts - begun[at]
        speed.rates.append(tokens * 1_000_000 // (ts - begun[at]))


def _answers(db: apsw.Connection, asked: Stats) -> Iterator[tuple[int, list[Answer]]]:
    """By session, in order of their keys."""
    wanted = scope.responses(db, asked)
    rows = db.execute(
        f"SELECT u.session_id, u.ts, {MODEL}, iif(u.stop_reason IS NULL, NULL, u.output_tokens)"
        f" {wanted.sql} AND u.ts IS NOT NULL ORDER BY u.session_id, u.ts",
        wanted.values,
    )
    for session, group in groupby(rows, key=lambda row: int(row[0])):
        yield session, [(ts, model, tokens) for _, ts, model, tokens in group]


def _marks(db: apsw.Connection, wanted: scope.Scope) -> Iterator[tuple[int, list[int]]]:
    """By session, when the model was asked and when it wrote something, in order.

    A mark is twice its time, plus what it is: numbers are sorted faster than pairs.
    """
    current: int | None = None
    marks: list[int] = []
    for session, mark, answered in db.execute(
        f"SELECT s.id, 2 * e.ts + iif(e.type = 'user', {_ASKED}, {_TOLD}),"
        f" 2 * e.answered + {_ASKED} {wanted.sql} AND {CALLED} AND e.ts IS NOT NULL"
        " AND e.type IN ('user', 'assistant', 'thinking', 'tool_use')"
        f" AND e.label IS NOT '{labels.API_ERROR}' ORDER BY s.id",
        wanted.values,
    ):
        if session != current:
            if current is not None:
                yield current, sorted(marks)
            current, marks = session, []
        marks.append(mark)
        if answered is not None:
            marks.append(answered)
    if current is not None:
        yield current, sorted(marks)
