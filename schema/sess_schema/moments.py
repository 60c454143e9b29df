"""When a session was active: moments, the gaps between them, and who spent each gap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from sess_schema.ids import SessionId

QUARTER = 15 * 60 * 1000
IDLE = 5 * 60 * 1000  # longer gaps count as this much
NEAR = 2000  # notices this close before a prompt came with it

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


def summed(session: SessionId, moments: Iterable[Moment]) -> Iterator[Summed]:
    """Sums by quarter of an hour, as the writer stores them and readers compute them."""
    for _, group in groupby(_marked(moments), key=lambda one: one[0] // QUARTER):
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
    found: list[tuple[int, bool]] = []
    next_ts, next_prompted = 0, False
    for ts in sorted(merged, reverse=True):
        said, prompted = merged[ts]
        if said:
            next_ts, next_prompted = ts, prompted
        found.append((ts, next_prompted and next_ts - ts <= NEAR))
    return found[::-1]


def moments(rows: Iterable[tuple[Any, ...]]) -> Iterator[Moment]:
    """From rows of `ts`, `SAID`, `WAITED_FOR` and `answered`."""
    for ts, said, prompted, answered in rows:
        if ts is not None and ts >= 0:
            yield Moment(ts, said, prompted)
        if answered is not None and answered >= 0:
            yield Moment(answered, said=True, prompted=False)


def joined(rows: Sequence[Summed]) -> Iterator[Span]:
    """Each span with the gap before it; rows are sorted by session and time."""
    for number, (session, first, last, inside, waited, prompted) in enumerate(rows):
        same = number > 0 and rows[number - 1][0] == session
        before = first - rows[number - 1][2] if same else 0
        yield Span(session, first, last, inside, waited, bool(prompted), before)
