"""Reads sums: stored ones, and counted ones where a window cuts through a quarter."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass
from sess_schema import marks, shown, sums
from sess_schema.ids import NO_SESSION, SessionId
from sess_schema.queries import sessions

if TYPE_CHECKING:
    from datetime import tzinfo
    from typing import Any


NONE = "none"  # the group of rows without one: responses have no tool
PERIODS = frozenset({"hour", "day", "week", "month"})
_NO_USAGE, _NO_EVENTS = (0,) * len(sums.USAGE_COUNTS), (0,) * len(sums.EVENT_COUNTS)
_BY_KEY = "GROUP BY 1, 2, 3"


@dataclass(slots=True)
class Selection:
    """A period, and sessions."""

    since: int | None = None
    until: int | None = None
    zone: tzinfo | None = None  # None for the system's
    agents: Sequence[str] = ()
    projects: Sequence[str] = ()
    models: Sequence[str] = ()
    branches: Sequence[str] = ()
    labels: Sequence[str] = ()
    pinned: bool = False
    session: SessionId | None = None  # with its subagents
    copies: bool = True  # for one session: include what another one had first
    subagents: str = "include"
    only: Sequence[int] | None = None  # of all those, these sessions


class Row(NamedTuple):
    """The sums of one quarter of an hour of one session."""

    quarter: int
    session: SessionId
    model: str | None
    kind: str | None  # the tool or file, if grouped by it
    counts: tuple[int, ...] = ()  # of a tally, without its sessions
    root: SessionId | None = None  # the session to count, if it counts


@dataclass(slots=True, frozen=True)
class Session:
    """A subagent counts with the session that started it, and in its project."""

    root: SessionId  # the outermost session above it that was read
    owner: SessionId  # the outermost one that has a project, or itself
    agent: str
    project: str  # of the owner
    branch: str


class Reader:
    """Reads what is selected, in rows per quarter of an hour and session."""

    def __init__(self, db: apsw.Connection, asked: Selection, by: Iterable[str] = ()) -> None:
        self._db = db
        self._asked = asked
        self._by = by = frozenset(by)
        self._by_model = "model" in by or bool(asked.models)
        # The fewer groups SQL makes, the fewer rows to merge here.
        self._timed = self._by_model or not by.isdisjoint(PERIODS)
        self._models: dict[int, tuple[list[int], list[str]]] = {}

    @cached_property
    def sessions(self) -> dict[SessionId, Session]:
        return _sessions(self._db)

    @cached_property
    def listed(self) -> set[SessionId]:
        return sessions.listed(self._db)

    @cached_property
    def names(self) -> dict[SessionId, str]:
        """The names of sessions; those that share an id also show where they are."""
        return dict(
            iter(
                self._db.execute(
                    "SELECT id, iif(home <> '' AND count(*) OVER (PARTITION BY native_id) > 1,"
                    " home || '/' || native_id, native_id) FROM sessions"
                )
            )
        )

    @cached_property
    def family(self) -> list[SessionId]:
        """The selected session with its subagents."""
        return sessions.family(self._db, self._asked.session or NO_SESSION)

    def condition(self, ts: str) -> tuple[str, tuple[object, ...]]:
        """SQL over `sessions s` and a time."""
        where, values = self._chosen()
        if self._asked.since is not None:
            where += f" AND {ts} >= ?"
            values.append(self._asked.since)
        if self._asked.until is not None:
            where += f" AND {ts} < ?"
            values.append(self._asked.until)
        return where, tuple(values)

    def _chosen(self) -> tuple[str, list[object]]:
        asked = self._asked
        where, values = sessions.condition(asked.agents, ())
        if asked.projects:
            where += f" AND s.id IN (SELECT value FROM json_each('{self._in_projects}'))"
        if asked.branches:
            where += f" AND ({' OR '.join(['lower(s.git_branch) GLOB ?'] * len(asked.branches))})"
            values += [sessions.bindable(sessions.lower(name)) for name in asked.branches]
        if asked.labels or asked.pinned:
            where += f" AND s.id IN (SELECT value FROM json_each('{self._marked}'))"
        if asked.session is not None:
            where += f" AND s.id IN ({', '.join(map(str, self.family))})"
        if asked.only is not None:
            where += f" AND s.id IN (SELECT value FROM json_each('{json.dumps([*asked.only])}'))"
        if asked.subagents != "include":
            where += f" AND s.kind {'=' if asked.subagents == 'only' else '<>'} 'subagent'"
        return where, [*values]

    @cached_property
    def _in_projects(self) -> str:
        """The sessions of the selected projects, as a JSON array."""
        where, values = sessions.condition((), self._asked.projects)
        matching = self._db.execute(f"SELECT s.id FROM sessions s WHERE {where}", tuple(values))
        owners = {key for (key,) in matching}
        return json.dumps([key for key, one in self.sessions.items() if one.owner in owners])

    @cached_property
    def _marked(self) -> str:
        """The sessions that are marked so with their subagents, as a JSON array."""
        where, values = marks.condition(self._asked.labels, pinned=self._asked.pinned)
        matching = self._db.execute(f"SELECT s.id FROM sessions s WHERE {where}", tuple(values))
        roots = {key for (key,) in matching}
        return json.dumps([key for key, one in self.sessions.items() if {key, one.root} & roots])

    def _whole(self) -> tuple[int | None, int | None]:
        """The whole quarters of the window: the first one, and the one after the last."""
        since, until = self._asked.since, self._asked.until
        first = None if since is None else max(0, -(-since // sums.QUARTER))
        last = None if until is None else until // sums.QUARTER
        return first, last

    def _ends(self) -> Iterator[tuple[int, int]]:
        """The times at both ends of the window that are not whole quarters."""
        since, until = self._asked.since, self._asked.until
        first, last = self._whole()
        if first is not None and last is not None and first > last:  # all in one quarter
            if since is not None and until is not None and since < until:
                yield since, until
            return
        if since is not None and first is not None and since < first * sums.QUARTER:
            yield since, first * sums.QUARTER
        if until is not None and last is not None and last * sums.QUARTER < until:
            yield last * sums.QUARTER, until

    def _summed(self, columns: str, table: str, where: str = "") -> Iterator[tuple[Any, ...]]:
        """From the sums the writer keeps."""
        chosen, values = self._chosen()
        first, last = self._whole()
        if first is not None and last is not None and first > last:
            return
        if first is not None:
            chosen += " AND k.quarter >= ?"
            values.append(first)
        if last is not None:
            chosen += f" AND k.quarter < ? AND k.quarter <> {sums.UNDATED}"
            values.append(last)
        joined = " JOIN sessions s ON s.id = k.session_id" if "s." in chosen + where else ""
        yield from self._db.execute(
            f"SELECT {columns} FROM {table} k{joined} WHERE {chosen} {where}", tuple(values)
        )

    def _counted(self, columns: str, table: str, where: str) -> Iterator[tuple[Any, ...]]:
        """Event by event, where the window cuts through a quarter."""
        name = table.rpartition(" ")[2]
        for since, until in self._ends():
            chosen, values = self._chosen()
            yield from self._db.execute(
                f"SELECT {columns} FROM {table} JOIN sessions s ON s.id = {name}.session_id"
                f" WHERE {chosen} AND {name}.ts >= ? AND {name}.ts < ? AND {where}",
                (*values, since, until),
            )

    def rows(self) -> Iterator[Row]:
        models = self._asked.models
        for row in chain(self._responses(), self._events()):
            if not models or sums.is_model(row.model, models):
                yield row

    def _responses(self) -> Iterator[Row]:
        quarter = "k.quarter" if self._timed else "0"
        model = "k.model" if self._by_model else "''"
        added = ", ".join(f"sum(k.{name})" for name in sums.USAGE_COUNTS)
        kept = self._summed(f"{quarter}, k.session_id, {model}, {added}", "usage_sums", _BY_KEY)
        counted = self._counted(
            f"{sums.quarter('u.ts')}, u.session_id, {sums.MODEL}, {sums.USAGE_SUMS}",
            "usage u",
            f"u.counted {_BY_KEY}",
        )
        responses = sorted(chain(kept, counted)) if self._by_model else chain(kept, counted)
        unknown, roots = not self._models, self.sessions
        for at, session, name, *counts in responses:
            if self._by_model and unknown:
                times, models = self._models.setdefault(session, ([], []))
                times.append(at)
                models.append(name)
            yield Row(at, session, name, None, (*counts, *_NO_EVENTS), roots[session].root)

    def _events(self) -> Iterator[Row]:
        quarter = "k.quarter" if self._timed else "0"
        live = sums.quarter("e.ts") if self._timed else "0"
        if "file" in self._by:  # sums are not grouped by file
            path = "(SELECT min(f.path) FROM files f WHERE f.event_id = e.id)"
            where, values = self.condition("e.ts")
            counted = self._db.execute(
                f"SELECT {live}, e.session_id, {path}, {sums.EVENT_SUMS} FROM events e"
                f" JOIN sessions s ON s.id = e.session_id"
                f" WHERE {where} AND {sums.COUNTED_EVENTS} {_BY_KEY}",
                values,
            )
            events = chain(counted, self._copied(live, path))
        else:
            tool = "k.tool" if "tool" in self._by else "''"
            events = chain(
                self._summed(
                    f"{quarter}, k.session_id, {tool}, sum(k.prompts), sum(k.calls),"
                    " sum(k.errors), sum(k.denied)",
                    "event_sums",
                    _BY_KEY,
                ),
                self._counted(
                    f"{live}, e.session_id, {sums.TOOL}, {sums.EVENT_SUMS}",
                    "events e",
                    f"{sums.COUNTED_EVENTS} {_BY_KEY}",
                ),
                self._copied(live, sums.TOOL if "tool" in self._by else "''"),
            )
        for at, session, what, prompts, calls, errors, denied in events:
            root = self.sessions[session].root if prompts or calls else None
            model = self._model_at(session, at)
            yield Row(at, session, model, what, (*_NO_USAGE, prompts, calls, errors, denied), root)

    def _copied(self, quarter: str, what: str) -> Iterator[tuple[Any, ...]]:
        """What one session and its subagents show but another session had first.

        Totals count it there; a query for one session counts what it shows.
        """
        if self._asked.session is None or not self._asked.copies:
            return
        family = ", ".join(map(str, self.family))
        where, values = self.condition("e.ts")
        yield from self._db.execute(
            f"SELECT {quarter}, s.id, {what}, {sums.EVENT_SUMS} FROM"
            f" {shown.OF_SEVERAL.format(family)} k JOIN events e ON e.id = k.event"
            " JOIN sessions s ON s.id = k.session_id"
            f" WHERE {where} AND e.session_id NOT IN ({family}) AND {sums.COUNTED_EVENTS}"
            f" {_BY_KEY}",
            values,
        )

    def spans(self) -> list[sums.Span]:
        """When each session was active, in order; for a single session, without its subagents."""
        session = self._asked.session
        if session is not None and forks(self._db, [session]):
            rows = [*sums.summed_moments(session, self._inside(moments_shown(self._db, session)))]
        else:
            columns = "k.session_id, k.first_ts, k.last_ts, k.active_ms, k.user_ms, k.prompted"
            own = "" if session is None else f" AND s.id = {session}"
            dated = f"AND k.quarter <> {sums.UNDATED}{own}"
            rows = sorted([*self._summed(columns, "spans", dated), *self._cut_spans(own)])
        return [
            span
            for span in sums.joined_spans(rows)
            if self.is_asked(span.session, span.first // sums.QUARTER)
        ]

    def _cut_spans(self, own: str) -> Iterator[sums.Summed]:
        """Summed as the writer does, for the quarters that the window cuts through."""
        for since, until in self._ends():
            chosen, values = self._chosen()
            # Inside the window, a prompt just after this end claims the last notices before it.
            later = until if until == self._asked.until else until + sums.NEAR
            rows = self._db.execute(
                f"SELECT e.session_id, e.ts, {sums.SAID}, {sums.WAITED_FOR}, e.answered"
                " FROM events e JOIN sessions s ON s.id = e.session_id"
                f" WHERE {chosen}{own} AND e.retired = 0"
                " AND (e.ts >= ? AND e.ts < ? OR e.answered >= ? AND e.answered < ?)"
                " ORDER BY e.session_id",
                (*values, since, later, since, later),
            )
            for session, group in groupby(rows, key=itemgetter(0)):
                dated = sums.moments_of(row[1:] for row in group)
                inside = (one for one in dated if since <= one.ts < later)
                yield from (one for one in sums.summed_moments(session, inside) if one[1] < until)

    def _inside(self, shown: Iterable[sums.Moment]) -> Iterator[sums.Moment]:
        since, until = self._asked.since, self._asked.until
        for moment in shown:
            if (since is None or moment.ts >= since) and (until is None or moment.ts < until):
                yield moment

    def unrecorded_chars(self) -> int:
        """Characters that models wrote in sessions without any token count."""
        if self._asked.models:
            return 0  # the model is unknown
        without = "AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.session_id = k.session_id)"
        whole = sum(chars for (chars,) in self._summed("k.chars", "spans", without))
        without = without.replace("k.", "e.").removeprefix("AND ")
        cut = self._counted("e.chars", "events e", f"e.retired = 0 AND {without}")
        return int(whole + sum(chars for (chars,) in cut))

    def is_asked(self, session: SessionId, quarter: int) -> bool:
        """Whether the session was using one of the selected models."""
        if not self._asked.models:
            return True
        if not self._models:
            deque(self._responses(), maxlen=0)
        return sums.is_model(self._model_at(session, quarter), self._asked.models)

    def _model_at(self, session: SessionId, quarter: int) -> str | None:
        """The model that a session was using: the last one that answered."""
        times, models = self._models.get(session, ([], []))
        if not models:
            return None
        return models[max(0, bisect_right(times, quarter) - 1)]


def _sessions(db: apsw.Connection) -> dict[SessionId, Session]:
    rows: dict[SessionId, tuple[Any, ...]] = {
        row[0]: row
        for row in db.execute(
            "SELECT id, parent_id, records > 0, project, agent, git_branch FROM sessions"
        )
    }
    sessions = {}
    for key, row in rows.items():
        root = owner = key
        for above in _upwards(rows, key):
            is_read, project = rows[above][2:4]
            root = above if is_read else root
            owner = above if project is not None else owner
        sessions[key] = Session(root, owner, row[4], rows[owner][3] or NONE, row[5] or NONE)
    return sessions


def _upwards(rows: dict[SessionId, tuple[Any, ...]], key: SessionId) -> Iterator[SessionId]:
    """The sessions above one, in order; damaged links may form a circle."""
    seen = {key}
    while (key := rows[key][1]) in rows and key not in seen:
        seen.add(key)
        yield key


# -- forks, which share some of their moments with another session


def forks(db: apsw.Connection, sessions: Sequence[SessionId]) -> set[SessionId]:
    """The sessions that share records with one that had them first."""
    return {
        session
        for (session,) in db.execute(
            "SELECT DISTINCT t.session_id FROM records t JOIN records o ON o.id = t.copy_of"
            " WHERE t.copy_of IS NOT NULL AND o.session_id <> t.session_id"
            " AND t.session_id IN (SELECT value FROM json_each(?))",
            (json.dumps([*sessions]),),
        )
    }


def moments_shown(db: apsw.Connection, session: SessionId) -> Iterator[sums.Moment]:
    """A fork's moments, copied and new."""
    yield from sums.moments_of(
        db.execute(
            f"SELECT e.ts, {sums.SAID}, {sums.WAITED_FOR}, e.answered FROM events e JOIN sessions s"
            f" ON s.id = ?1 WHERE e.id IN ({shown.IDS.replace('?', '?1')})",
            (session,),
        )
    )
