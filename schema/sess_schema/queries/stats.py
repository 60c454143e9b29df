"""Tokens, cost and activity, summed by any group.

The writer keeps sums per quarter of an hour and session (`sess_schema.sums`), which are added up
here by group. Only quarters that a window cuts through are counted event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache

import apsw

from sess_schema import sums
from sess_schema.moments import QUARTER
from sess_schema.queries.quarters import NONE, PERIODS, Reader, Row, Selection
from sess_schema.queries.tally import Sum, Tally
from sess_schema.session import shown

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
        return {group: inner[""] for group, inner in self._summed(db, by, "").items()}

    def table(self, db: apsw.Connection, by: str, then: str) -> dict[str, dict[str, Tally]]:
        """The sums by two groups, such as day and model."""
        return self._summed(db, by, then)

    def _summed(self, db: apsw.Connection, by: str, then: str) -> dict[str, dict[str, Tally]]:
        reader = Reader(db, self, {by, then})
        found: dict[str, dict[str, Sum]] = {}
        outer, inner = self.label(reader, by), self.label(reader, then)
        for row in reader.rows():
            group = found.setdefault(outer(row), {})
            name = inner(row)
            if name not in group:
                group[name] = Sum()
            group[name].add(row.counts, row.root)
        return {
            group: {name: found[group][name].tally() for name in sorted(found[group])}
            for group in sorted(found)
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
