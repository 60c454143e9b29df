"""Hits grouped by conversation: a session with the subagents it started."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from sess_common.classes import dataclass, field
from sess_schema import shown
from sess_schema.ids import SessionId
from sess_schema.queries.fields import Condition, range_of
from sess_schema.queries.search.engine import Hit, Results
from sess_schema.queries.search.ranking import Ranked

PER_SESSION = 3
_MOST_COUNTED = 1000


@dataclass(slots=True)
class Group:
    """A conversation and its best hits."""

    root: SessionId
    hits: list[Hit] = field(default_factory=list)
    more: int = 0  # other matching events
    counted: bool = True  # whether `more` is exact


def grouped(db: apsw.Connection, results: Results, limit: int, width: int) -> list[Group]:
    """The best conversations, each with its best hits; `limit` applies to hits.

    A single conversation shows up to `limit` hits.
    """
    families = Families(db)
    groups: dict[SessionId, Group] = {}
    waiting: list[Ranked] = []
    shown = 0
    for ranked in results.ranked():
        root = families.root(ranked.session)
        group = groups.setdefault(root, Group(root))
        if len(group.hits) < PER_SESSION:
            group.hits.append(results.hit(ranked, width))
            shown += 1
        elif len(groups) == 1:
            waiting.append(ranked)
        if shown == limit or (len(groups) == 1 and shown + len(waiting) == limit):
            break
    if len(groups) == 1:
        for group in groups.values():
            group.hits += [results.hit(ranked, width) for ranked in waiting]
    _count_more(results, families, list(groups.values()))
    return list(groups.values())


def _count_more(results: Results, families: Families, groups: list[Group]) -> None:
    """Count the events of each group that are not shown."""
    if not results.plan.scans:
        members = {key: group for group in groups for key in families.members(group.root)}
        # The events of a session lie close together, those of several do not. But all events with
        # a word that begins so are collected for each query.
        each = [[*members]] if "*" in (results.plan.match or "") else [[key] for key in members]
        for keys in each:
            for key, count in results.count_by_session(within(keys)).items():
                members[key].more += count
        for group in groups:
            group.more -= len(group.hits)
        return
    for group in groups:
        most = _MOST_COUNTED + len(group.hits)
        found = results.count(within(families.members(group.root)), most)
        group.more = found - len(group.hits)
        group.counted = found < most


def within(members: Iterable[SessionId]) -> Condition:
    """The events of sessions."""
    keys = f"[{','.join(map(str, members))}]"
    inside = "IN (SELECT value FROM json_each(?))"
    where = f"session_id {inside}"
    return Condition(f"e.{where}", (keys,), range=range_of(where, (keys,)))


class Families:
    """Finds the topmost session above a subagent."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._roots: dict[SessionId, SessionId] = {}

    def root(self, session: SessionId) -> SessionId:
        if session not in self._roots:
            seen, at = {session}, session
            while (above := self._parent(at)) is not None and above not in seen:
                seen.add(above)
                at = above
            self._roots[session] = at
        return self._roots[session]

    def members(self, root: SessionId) -> list[SessionId]:
        """A session and every subagent below it."""
        return [key for (key,) in self._db.execute(shown.FAMILY, (root,))]

    def _parent(self, session: SessionId) -> SessionId | None:
        parent: SessionId | None = self._db.execute(
            "SELECT p.id FROM sessions s JOIN sessions p ON p.id = s.parent_id"
            " WHERE s.id = ? AND p.records > 0",
            (session,),
        ).get
        return parent
