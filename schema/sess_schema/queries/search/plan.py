"""From a query to SQL: what the index decides, what SQL decides, what must be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import apsw

from sess_schema.marks import FAILED
from sess_schema.queries.fields import ANY, Condition
from sess_schema.queries.search.language import And, Filter, Node, Not, Or, Query
from sess_schema.queries.search.terms import Leaf, Term, occurs

if TYPE_CHECKING:
    from sess_schema.queries.search.screen import Screen

Conditions = Callable[[Filter], Condition]

_COLUMNS = ("text", "input", "output")
_TOOL_TEXT = "(x.input || ' ' || x.output)"
_LIKE = "{} LIKE ? ESCAPE '\\'"


@dataclass(frozen=True, slots=True)
class Plan:
    """How the events of a query are found. What the first three let through may still need
    `residual` compared."""

    match: str | None  # for FTS5
    where: Condition
    bounds: tuple[Condition, ...]  # over `event_index`
    excludes: bool  # whether `match` has a NOT
    residual: Node | None
    screen: Screen | None  # every text that is left passes it
    enough: Condition | None  # what satisfies it needs no comparison

    @property
    def scans(self) -> bool:
        """Whether texts are read to find out what matches."""
        return self.where.texts or self.residual is not None


@dataclass(frozen=True, slots=True)
class _Part:
    """What every match of a node satisfies; `exact` if nothing else does."""

    match: str | None = None
    where: Condition | None = None
    exact: bool = True
    unless: str | None = None  # excluded by words alone


def plan(query: Query, conditions: Conditions) -> Plan:
    planner = _Planner(conditions)
    tree = query.tree
    part = planner.settled(planner.all_of([tree], query.phrase()))
    residual: Node | None = None
    if not part.exact:
        nodes = tree.nodes if isinstance(tree, And) else (tree,)
        left = tuple(node for node in nodes if not planner.part(node).exact)
        residual = left[0] if len(left) == 1 else And(left)
    filters = [
        n for n in (tree.nodes if isinstance(tree, And) else (tree,)) if isinstance(n, Filter)
    ]
    bounds = tuple(c.bound for c in map(conditions, filters) if c.bound is not None)
    where = part.where or ANY
    screen = enough = None
    if part.match is None:
        screen = _screen(residual)
        if isinstance(residual, Term) and residual.enough:
            enough = _contains(residual, residual.enough)
    return Plan(part.match, where, bounds, planner.excludes, residual, screen, enough)


def _screen(residual: Node | None) -> Screen | None:
    """Where LIKE says little: expressions, and letters whose case only Unicode knows."""
    if isinstance(residual, And):
        some = next(filter(None, map(_screen, residual.nodes)), None)
        return some and replace(some, faithful=False)
    if residual is None or isinstance(residual, Not | Or | Filter):
        return None
    return residual.screen


class _Planner:
    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self.excludes = False

    def part(self, node: Node) -> _Part:
        if isinstance(node, Filter):
            return _Part(where=self._conditions(node))
        if isinstance(node, Not):
            return self._not(self.part(node.node))
        if isinstance(node, And):
            return self.all_of(node.nodes)
        if isinstance(node, Or):
            return self._any_of([self.settled(self.part(child)) for child in node.nodes])
        return _leaf(node)

    def all_of(self, nodes: Sequence[Node], phrase: str | None = None) -> _Part:
        if len(nodes) == 1 and isinstance(nodes[0], And):
            nodes = nodes[0].nodes
        words = [n for n in nodes if isinstance(n, Term) and n.exact and not n.prefix]
        matches = []
        if phrase is not None:
            together = " AND ".join(word.match or "" for word in words)
            matches.append(f"(({together}) OR {phrase})")
            nodes = [node for node in nodes if node not in words]
        parts = [self.part(node) for node in nodes]
        matches += [part.match for part in parts if part.match]
        unless = [part.unless for part in parts if part.unless]
        where = _joined(" AND ", [part.where for part in parts if part.where])
        exact = all(part.exact for part in parts)
        match = f"({' AND '.join(matches)})" if matches else None
        # The exclusions stand under one NOT, for FTS5 limits how deep operators nest.
        left = f"({' OR '.join(unless)})" if unless else None
        if match and left:
            match, left = f"({match} NOT {left})", None
            self.excludes = True
        return _Part(match, where, exact, left)

    def _any_of(self, parts: Sequence[_Part]) -> _Part:
        exact = all(part.exact for part in parts)
        match = None
        if all(part.match for part in parts):
            match = f"({' OR '.join(part.match for part in parts if part.match)})"
            if not any(part.where for part in parts):
                return _Part(match, exact=exact)
        wheres = [_as_where(part) for part in parts]
        if not all(wheres):  # one of them can be anything
            return _Part(match, exact=False)
        return _Part(match, _joined(" OR ", [where for where in wheres if where]), exact)

    def _not(self, part: _Part) -> _Part:
        part = self.settled(part)
        if not part.exact:
            return _Part(exact=False)
        if part.match and not part.where:
            return _Part(unless=part.match)
        where = _as_where(part)
        return _Part(where=_negated(where)) if where else _Part(exact=False)

    def settled(self, part: _Part) -> _Part:
        """Without exclusions that stand alone: FTS5 has no such thing."""
        if part.unless is None:
            return part
        without = _negated(_in_index(part.unless))
        where = _joined(" AND ", [c for c in (part.where, without) if c])
        return _Part(part.match, where, part.exact)


def _leaf(leaf: Leaf) -> _Part:
    if leaf.match is not None:
        return _Part(leaf.match, exact=leaf.exact)
    if leaf.like is None:
        return _Part(exact=False)
    return _Part(where=_contains(leaf, leaf.like), exact=leaf.like == leaf.enough)


def _contains(leaf: Leaf, like: str) -> Condition:
    tools = isinstance(leaf, Term) and leaf.matching.mode == "tools"
    places = (_TOOL_TEXT,) if tools else tuple(f"x.{column}" for column in _COLUMNS)
    sql = " OR ".join(_LIKE.format(place) for place in places)
    values: tuple[object, ...] = (like,) * len(places)
    if isinstance(leaf, Term) and leaf.marked:
        sql, values = f"{sql} OR instr(x.marks, ?)", (*values, FAILED)
    return Condition(f"({sql})", values, texts=True)


def _as_where(part: _Part) -> Condition | None:
    conditions = [part.where] if part.where else []
    if part.match:
        conditions.insert(0, _in_index(part.match))
    return _joined(" AND ", conditions)


def _in_index(match: str) -> Condition:
    return Condition("e.id IN (SELECT rowid FROM event_index WHERE event_index MATCH ?)", (match,))


def _negated(condition: Condition) -> Condition:
    # What an event does not have is NULL, and is not what was excluded.
    return replace(condition, sql=f"NOT coalesce({condition.sql}, 0)", bound=None)


def _joined(operator: str, conditions: Sequence[Condition]) -> Condition | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    sql = operator.join(f"({condition.sql})" for condition in conditions)
    values = tuple(value for condition in conditions for value in condition.values)
    return Condition(f"({sql})", values, texts=any(c.texts for c in conditions))


def matching(
    plan: Plan, base: Condition, match: str | None, columns: str, *, texts: bool = False
) -> tuple[str, list[object]]:
    """SELECT e.id, e.ts and other columns of what a plan lets through."""
    join = " CROSS JOIN event_texts x ON x.id = e.id" if plan.where.texts or texts else ""
    where = f"{base.sql} AND ({plan.where.sql})"
    more = f", {columns}" if columns else ""
    if match is None:
        return (
            f"SELECT e.id, e.ts{more} FROM events e{join} WHERE {where}",
            [*base.values, *plan.where.values],
        )
    bounds = "".join(f" AND {bound.sql}" for bound in plan.bounds)
    bound_values = [value for bound in plan.bounds for value in bound.values]
    sql = (
        f"SELECT e.id, e.ts{more} FROM event_index CROSS JOIN events e ON e.id = event_index.rowid"
        f"{join} WHERE event_index MATCH ?{bounds} AND {where}"
    )
    return sql, [match, *bound_values, *base.values, *plan.where.values]


class Comparison:
    """Whether a node holds for one event, asked of whoever can tell."""

    def __init__(self, db: apsw.Connection, conditions: Conditions) -> None:
        self._db = db
        self._conditions = conditions

    def holds(self, node: Node, event: int, texts: Sequence[str]) -> bool:
        if isinstance(node, Not):
            return not self.holds(node.node, event, texts)
        if isinstance(node, And):
            return all(self.holds(child, event, texts) for child in node.nodes)
        if isinstance(node, Or):
            return any(self.holds(child, event, texts) for child in node.nodes)
        if isinstance(node, Filter):
            condition = self._conditions(node)
            sql = f"SELECT 1 FROM events e WHERE e.id = ? AND ({condition.sql})"
            return self._db.execute(sql, (event, *condition.values)).get is not None
        if node.exact:
            sql = "SELECT 1 FROM event_index WHERE event_index MATCH ? AND rowid = ?"
            return self._db.execute(sql, (node.match, event)).get is not None
        if isinstance(node, Term) and node.matching.mode == "tools":
            return occurs(node, [f"{texts[1]} {texts[2]}"])
        failed = isinstance(node, Term) and node.marked and FAILED in texts[3]
        return failed or occurs(node, texts[:3])
