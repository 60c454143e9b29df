"""Hits put together by conversation: a session with the subagents it started."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import apsw

from sess_schema.queries.fields import Condition
from sess_schema.queries.search.engine import Hit, Results

PER_SESSION = 3
_MOST_COUNTED = 1000


@dataclass(slots=True)
class Group:
    """A conversation and its best hits."""

    root: int
    hits: list[Hit] = field(default_factory=list)
    more: int = 0  # other events that match; counted up to a thousand


def grouped(db: apsw.Connection, results: Results, limit: int, width: int) -> list[Group]:
    """The best conversations, each with its best hits; `limit` counts hits, 0 for all of them."""
    families = Families(db)
    groups: dict[int, Group] = {}
    shown = 0
    for ranked in results.ranked():
        session = results.session_of(ranked.event)
        root = families.root(session)
        group = groups.setdefault(root, Group(root))
        if len(group.hits) < PER_SESSION or not limit:
            group.hits.append(results.hit(ranked, width))
            shown += 1
        if shown == limit:
            break
    for group in groups.values() if limit else ():
        within = families.within(group.root)
        found = results.count(within, _MOST_COUNTED + len(group.hits))
        group.more = found - len(group.hits)
    return list(groups.values())


class Families:
    """Which session a subagent belongs to in the end."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._roots: dict[int, int] = {}

    def root(self, session: int) -> int:
        if session not in self._roots:
            seen, at = {session}, session
            while (above := self._parent(at)) is not None and above not in seen:
                seen.add(above)
                at = above
            self._roots[session] = at
        return self._roots[session]

    def within(self, root: int) -> Condition:
        """The events of a session and of every subagent below it."""
        members = json.dumps(
            [
                key
                for (key,) in self._db.execute(
                    "WITH RECURSIVE family (id) AS (VALUES (?) UNION"
                    " SELECT s.id FROM sessions s JOIN family f ON s.parent_id = f.id)"
                    " SELECT id FROM family",
                    (root,),
                )
            ]
        )
        inside = "IN (SELECT value FROM json_each(?))"
        events = f"FROM events WHERE session_id {inside}"
        between = f"(SELECT min(+id) {events}) AND (SELECT max(+id) {events})"
        bound = Condition(f"event_index.rowid BETWEEN {between}", (members, members))
        return Condition(f"e.session_id {inside}", (members,), bound=bound)

    def _parent(self, session: int) -> int | None:
        parent: int | None = self._db.execute(
            "SELECT p.id FROM sessions s JOIN sessions p ON p.id = s.parent_id"
            " WHERE s.id = ? AND p.turns > 0",
            (session,),
        ).get
        return parent
