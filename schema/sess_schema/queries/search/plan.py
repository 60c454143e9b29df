"""From a query to SQL: what the index decides, what SQL decides, what must be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass, replace
from sess_schema.queries.fields import ANY, Condition, Range
from sess_schema.queries.search.language import And, Filter, Not, Or
from sess_schema.queries.search.terms import Term, occurs
from sess_schema.search_index import FAILED

if TYPE_CHECKING:
    from sess_schema.ids import EventId
    from sess_schema.queries.search.language import Node, Query
    from sess_schema.queries.search.screen import Screen
    from sess_schema.queries.search.terms import Leaf

Conditions = Callable[[Filter], Condition]

_COLUMNS = ("text", "input", "output")
_TOOL_TEXT = "(x.input || ' ' || x.output)"
_LIKE = "{} LIKE ? ESCAPE '\\'"


@dataclass(frozen=True, slots=True)
class Plan:
    """How to find the events of a query. Events that pass the first three may still have to be
    compared with `residual`."""

    match: str | None  # for FTS5
    where: Condition
    ranges: tuple[Range, ...]  # every match is inside all of them
    excludes: bool  # whether `match` has a NOT
    residual: Node | None
    screen: Screen | None  # every text that matches `residual` passes it
    enough: Condition | None  # events that satisfy it need no comparison

    @property
    def scans(self) -> bool:
        """Whether matching requires reading texts."""
        return self.where.texts or self.residual is not None


@dataclass(frozen=True, slots=True)
class _Need:
    """What every match of a node satisfies; `exact` if nothing else does."""

    match: str | None = None
    where: Condition | None = None
    exact: bool = True
    unless: str | None = None  # excluded by words alone


def plan(query: Query, conditions: Conditions) -> Plan:
    planner = _Planner(conditions)
    tree = query.tree
    need = planner.as_conditions(planner.all_of([tree], query.phrase()))
    residual: Node | None = None
    if not need.exact:
        nodes = tree.nodes if isinstance(tree, And) else (tree,)
        left = tuple(node for node in nodes if not planner.need(node).exact)
        residual = left[0] if len(left) == 1 else And(left)
    filters = [
        n for n in (tree.nodes if isinstance(tree, And) else (tree,)) if isinstance(n, Filter)
    ]
    ranges = tuple(c.range for c in map(conditions, filters) if c.range is not None)
    where = need.where or ANY
    screen = enough = None
    if need.match is None:
        screen = _screen(residual)
        if isinstance(residual, Term) and residual.enough:
            enough = _contains(residual, residual.enough)
    return Plan(need.match, where, ranges, planner.excludes, residual, screen, enough)


def _screen(residual: Node | None) -> Screen | None:
    """For what LIKE cannot narrow: regular expressions, and letters with case outside ASCII."""
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

    def need(self, node: Node) -> _Need:
        if isinstance(node, Filter):
            return _Need(where=self._conditions(node))
        if isinstance(node, Not):
            return self._not(self.need(node.node))
        if isinstance(node, And):
            return self.all_of(node.nodes)
        if isinstance(node, Or):
            return self._any_of([self.as_conditions(self.need(child)) for child in node.nodes])
        return _leaf(node)

    def all_of(self, nodes: Sequence[Node], phrase: str | None = None) -> _Need:
        if len(nodes) == 1 and isinstance(nodes[0], And):
            nodes = nodes[0].nodes
        words = [n for n in nodes if isinstance(n, Term) and n.exact and not n.prefix]
        matches = []
        if phrase is not None:
            together = " AND ".join(word.match or "" for word in words)
            matches.append(f"(({together}) OR {phrase})")
            nodes = [node for node in nodes if node not in words]
        needs = [self.need(node) for node in nodes]
        matches += [need.match for need in needs if need.match]
        unless = [need.unless for need in needs if need.unless]
        where = _joined(" AND ", [need.where for need in needs if need.where])
        exact = all(need.exact for need in needs)
        match = f"({' AND '.join(matches)})" if matches else None
        # All exclusions go under one NOT, because FTS5 limits how deep operators nest.
        left = f"({' OR '.join(unless)})" if unless else None
        if match and left:
            match, left = f"({match} NOT {left})", None
            self.excludes = True
        return _Need(match, where, exact, left)

    def _any_of(self, needs: Sequence[_Need]) -> _Need:
        exact = all(need.exact for need in needs)
        match = None
        if all(need.match for need in needs):
            match = f"({' OR '.join(need.match for need in needs if need.match)})"
            if not any(need.where for need in needs):
                return _Need(match, exact=exact)
        wheres = [_as_where(need) for need in needs]
        if not all(wheres):  # one of them matches anything
            return _Need(match, exact=False)
        return _Need(match, _joined(" OR ", [where for where in wheres if where]), exact)

    def _not(self, need: _Need) -> _Need:
        need = self.as_conditions(need)
        if not need.exact:
            return _Need(exact=False)
        if need.match and not need.where:
            return _Need(unless=need.match)
        where = _as_where(need)
        return _Need(where=_negated(where)) if where else _Need(exact=False)

    def as_conditions(self, need: _Need) -> _Need:
        """Turn a lone exclusion into a condition: FTS5 has no unary NOT."""
        if need.unless is None:
            return need
        without = _negated(_in_index(need.unless))
        where = _joined(" AND ", [c for c in (need.where, without) if c])
        return _Need(need.match, where, need.exact)


def _leaf(leaf: Leaf) -> _Need:
    if leaf.match is not None:
        return _Need(leaf.match, exact=leaf.exact)
    if leaf.like is None:
        return _Need(exact=False)
    return _Need(where=_contains(leaf, leaf.like), exact=leaf.like == leaf.enough)


def _contains(leaf: Leaf, like: str) -> Condition:
    tools = isinstance(leaf, Term) and leaf.matching.mode == "tools"
    places = (_TOOL_TEXT,) if tools else tuple(f"x.{column}" for column in _COLUMNS)
    sql = " OR ".join(_LIKE.format(place) for place in places)
    values: tuple[object, ...] = (like,) * len(places)
    if isinstance(leaf, Term) and leaf.marked:
        sql, values = f"{sql} OR instr(x.marks, ?)", (*values, FAILED)
    return Condition(f"({sql})", values, texts=True)


def _as_where(need: _Need) -> Condition | None:
    conditions = [need.where] if need.where else []
    if need.match:
        conditions.insert(0, _in_index(need.match))
    return _joined(" AND ", conditions)


def _in_index(match: str) -> Condition:
    return Condition("e.id IN (SELECT rowid FROM event_index WHERE event_index MATCH ?)", (match,))


def _negated(condition: Condition) -> Condition:
    # A missing value is NULL, and a missing value is not excluded.
    return replace(condition, sql=f"NOT coalesce({condition.sql}, 0)", range=None)


def _joined(operator: str, conditions: Sequence[Condition]) -> Condition | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    sql = operator.join(f"({condition.sql})" for condition in conditions)
    values = tuple(value for condition in conditions for value in condition.values)
    return Condition(f"({sql})", values, texts=any(c.texts for c in conditions))


def matching(
    plan: Plan, base: Condition, match: str | None, columns: str, *, texts: bool = False
) -> tuple[str, list[object]]:
    """SELECT e.id, e.ts and other columns of a plan's candidates."""
    join = " CROSS JOIN event_texts x ON x.id = e.id" if plan.where.texts or texts else ""
    where = f"{base.sql} AND ({plan.where.sql})"
    more = f", {columns}" if columns else ""
    if match is None:
        return (
            f"SELECT e.id, e.ts{more} FROM events e{join} WHERE {where}",
            [*base.values, *plan.where.values],
        )
    inside, inside_values = _inside(plan.ranges)
    sql = (
        f"SELECT e.id, e.ts{more} FROM event_index CROSS JOIN events e ON e.id = event_index.rowid"
        f"{join} WHERE event_index MATCH ?{inside} AND {where}"
    )
    return sql, [match, *inside_values, *base.values, *plan.where.values]


def _inside(ranges: Sequence[Range]) -> tuple[str, list[object]]:
    if not ranges:
        return "", []
    (first, last), values = between(ranges)
    return f" AND event_index.rowid BETWEEN {first} AND {last}", values


def between(ranges: Sequence[Range]) -> tuple[tuple[str, str], list[object]]:
    """One limit at each end: of several, full text uses the first and reads on to that."""
    first, last = (
        f"{function}({', '.join(ends)})" if len(ends) > 1 else ends[0]
        for function, ends in (
            ("max", [one.first for one in ranges]),
            ("min", [one.last for one in ranges]),
        )
    )
    values = [value for one in ranges for value in one.values]
    return (first, last), values * 2


class Comparison:
    """Whether a node holds for one event, by SQL, full text or comparison."""

    def __init__(self, db: apsw.Connection, conditions: Conditions) -> None:
        self._db = db
        self._conditions = conditions

    def holds(self, node: Node, event: EventId, texts: Sequence[str]) -> bool:
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
