"""The events and responses that a `Stats` selects, as SQL."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import apsw

from sess_schema.ids import SessionId
from sess_schema.queries.stats import Stats
from sess_schema.sums import CALLED, MODEL, QUARTER, UNDATED, is_model, quarter

ANSWERED = "asked_model_answered"


class Scope(NamedTuple):
    """`FROM … WHERE …` and its values."""

    sql: str
    values: tuple[object, ...]


def events(db: apsw.Connection, asked: Stats, *, joins: str = "") -> Scope:
    """Over `events e` and `sessions s`, the session that shows an event."""
    where, values = asked.condition(db, "e.ts")
    if asked.models:
        _register_models(db, asked)
        where += f" AND {ANSWERED}(s.id, e.ts)"
    return Scope(f"FROM {asked.events(db)} {joins} WHERE {where} AND e.retired = 0", values)


def calls(db: apsw.Connection, asked: Stats, *, joins: str = "") -> Scope:
    """Tool calls; results without a call are events, but not calls."""
    sql, values = events(db, asked, joins=joins)
    return Scope(f"{sql} AND e.type = 'tool_use' AND {CALLED}", values)


def responses(db: apsw.Connection, asked: Stats) -> Scope:
    """Over `usage u JOIN sessions s`, each response once."""
    where, values = asked.condition(db, "u.ts")
    if asked.models:
        inside = f"instr(lower({MODEL}), ?)"
        where += f" AND ({' OR '.join([inside] * len(asked.models))})"
        values = (*values, *(name.lower() for name in asked.models))
    joined = "usage u JOIN sessions s ON s.id = u.session_id"
    if asked.only is not None:
        joined = "sessions s CROSS JOIN usage u ON u.session_id = s.id"
    return Scope(f"FROM {joined} WHERE {where} AND u.counted", values)


class Models:
    """The model a session was using at a time: the last one that answered.

    As precise as the stored sums: to a quarter of an hour.
    """

    def __init__(self, db: apsw.Connection, asked: Stats) -> None:
        self._answered: dict[int, tuple[list[int], list[str]]] = {}
        where, values = asked.condition(db, "u.ts")
        for at, session, model in db.execute(
            f"SELECT DISTINCT {quarter('u.ts')}, u.session_id, {MODEL} FROM usage u"
            f" JOIN sessions s ON s.id = u.session_id WHERE {where} AND u.counted ORDER BY 1, 2, 3",
            values,
        ):
            quarters, models = self._answered.setdefault(session, ([], []))
            quarters.append(at)
            models.append(model)

    def at(self, session: SessionId, ts: int | None) -> str | None:
        quarters, models = self._answered.get(session, ([], []))
        if not models:
            return None
        return models[max(0, bisect_right(quarters, quarter_of(ts)) - 1)]


def quarter_of(ts: int | None) -> int:
    return UNDATED if ts is None or ts < 0 else ts // QUARTER


def _register_models(db: apsw.Connection, asked: Stats) -> None:
    """Make them available as an SQL function."""
    models = Models(db, asked)

    def answered(*given: Any) -> bool:
        return is_model(models.at(*given), asked.models)

    db.create_scalar_function(ANSWERED, answered, 2)
