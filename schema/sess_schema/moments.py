"""When a session was at work: moments, the gaps between them, and whose gap each was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

QUARTER = 15 * 60 * 1000
IDLE = 5 * 60 * 1000  # nobody works longer between two moments
NEAR = 2000  # notes that stand so short before a prompt came with it

# Session, first and last moment, time between them, of that before prompts, begins with a prompt.
Summed = tuple[int, int, int, int, int, bool]


class Moment(NamedTuple):
    """A time at which something happened, or at which a result came."""

    ts: int
    said: bool  # no note beside the conversation
    prompted: bool


class Span(NamedTuple):
    """What a session did in one quarter of an hour."""

    session: int
    first: int
    last: int
    inside: int  # between its moments, each gap cut at five minutes
    waited: int  # of that, before prompts
    prompted: bool  # it begins with one
    before: int  # since the span before it, whole; 0 for the first

    @property
    def active(self) -> int:
        return self.inside + min(self.before, IDLE)

    @property
    def user(self) -> int:
        return self.waited + (min(self.before, IDLE) if self.prompted else 0)


def summed(session: int, moments: Iterable[Moment]) -> Iterator[Summed]:
    """By quarter of an hour, as the writer keeps them and a reader counts them."""
    for _, group in groupby(_marked(moments), key=lambda one: one[0] // QUARTER):
        marked = [*group]
        gaps = [(min(b - a, IDLE), prompted) for (a, _), (b, prompted) in pairwise(marked)]
        yield (
            session, marked[0][0], marked[-1][0], sum(gap for gap, _ in gaps),
            sum(gap for gap, prompted in gaps if prompted), marked[0][1],
        )  # fmt: skip


def _marked(moments: Iterable[Moment]) -> list[tuple[int, bool]]:
    """Each moment once, in order, and whether it is a prompt's.

    Notes that stand just before a prompt came with it: the wait before them was the person's.
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
    """Of rows with `ts`, `SAID`, `PROMPT` and `answered`."""
    for ts, said, prompted, answered in rows:
        if ts is not None and ts >= 0:
            yield Moment(ts, said, prompted)
        if answered is not None and answered >= 0:
            yield Moment(answered, said=True, prompted=False)


def joined(told: Sequence[Summed]) -> Iterator[Span]:
    """In order of sessions and times, each with the gap before it."""
    for number, (session, first, last, inside, waited, prompted) in enumerate(told):
        same = number > 0 and told[number - 1][0] == session
        before = first - told[number - 1][2] if same else 0
        yield Span(session, first, last, inside, waited, bool(prompted), before)
