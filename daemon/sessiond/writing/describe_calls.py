"""Adds kinds and edits to calls indexed before these existed, from the archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import apsw

from sess_schema import kinds
from sess_schema.progress import Progress, unseen
from sess_schema.records import Records
from sessiond.sourcekit.base import Described
from sessiond.writing.event_rows import WRITE_EDITS, edit_rows

_FACT = "calls_to_describe"  # calls up to this id have no kind yet
_BATCH = 2000

# `describe_stored` of the sources, by agent.
Describers = Mapping[str, Callable[[str | None, Any, str, Callable[[], Any]], Described]]
_UNKNOWN = Described(kinds.OTHER)


class _Call(NamedTuple):
    """Sorted calls are in the order of the archive."""

    place: tuple[int, int, int, int]
    id: int
    agent: str
    tool: str | None
    pointer: str | None
    answer: tuple[int, int, int, int] | None


def describe_calls(db: apsw.Connection, describers: Describers, progress: Progress = unseen) -> int:
    """Describe the newest first; each batch commits its position. Return how many."""
    done = 0
    while (last := db.execute("SELECT value FROM facts WHERE name = ?", (_FACT,)).get) is not None:
        progress(f"describing older tool calls, {done:,} done")
        with db:
            calls = _calls(db, int(last))
            _describe(db, describers, calls)
            if calls:
                before = min(call.id for call in calls) - 1
                db.execute("UPDATE facts SET value = ? WHERE name = ?", (before, _FACT))
            else:
                _describe_answers(db)
                db.execute("DELETE FROM facts WHERE name = ?", (_FACT,))
        done += len(calls)
    return done


def _calls(db: apsw.Connection, last: int) -> list[_Call]:
    found = []
    for event, agent, tool, pointer, *places in db.execute(
        "SELECT e.id, s.agent, e.tool, e.pointer, t.source_id, t.retired, t.offset, t.length,"
        " r.source_id, r.retired, r.offset, r.length FROM events e"
        " JOIN sessions s ON s.id = e.session_id JOIN turns t ON t.id = e.turn_id"
        " LEFT JOIN turns r ON r.id = e.result_turn_id"
        " WHERE e.id <= ? AND e.type = 'tool_use' AND e.unjoined IS NULL AND e.kind IS NULL"
        " ORDER BY e.id DESC LIMIT ?",
        (last, _BATCH),
    ):
        answer = tuple(places[4:]) if places[4] is not None else None
        found.append(_Call(tuple(places[:4]), event, agent, tool, pointer, answer))
    return found


def _describe(db: apsw.Connection, describers: Describers, calls: list[_Call]) -> None:
    records, answers = Records(db), Records(db)
    named = list[tuple[str, int]]()
    changed = list[tuple[int, int, str, int, int, bytes]]()
    for call in sorted(calls):
        describe = describers.get(call.agent)
        described = describe(*_given(call, records, answers)) if describe else _UNKNOWN
        named.append((described.kind, call.id))
        changed += edit_rows(call.id, described.edits)
    db.executemany("UPDATE events SET kind = ? WHERE id = ?", named)
    db.executemany(
        "INSERT OR IGNORE INTO undigested SELECT session_id FROM events WHERE id = ?",
        [(event,) for _, event in named],
    )
    db.executemany("DELETE FROM edits WHERE event_id = ?", [(event,) for _, event in named])
    db.executemany(WRITE_EDITS, changed)


def _given(
    call: _Call, records: Records, answers: Records
) -> tuple[str | None, Any, str, Callable[[], Any]]:
    pointer = call.pointer or ""
    record = records.holding(call.place, pointer) if pointer else None
    place = call.answer
    return call.tool, record, pointer, lambda: answers.value(place, "") if place else None


def _describe_answers(db: apsw.Connection) -> None:
    """A separate result has the kind of its call."""
    db.execute(
        "UPDATE events SET kind = coalesce((SELECT c.kind FROM events c"
        " WHERE c.call_key = events.call_key AND c.call_id = events.call_id"
        " AND c.unjoined IS NULL AND c.kind IS NOT NULL"
        " ORDER BY c.tool IS NOT events.tool, c.id DESC LIMIT 1), ?)"
        " WHERE type = 'tool_use' AND unjoined = 'answer' AND kind IS NULL",
        (kinds.OTHER,),
    )
