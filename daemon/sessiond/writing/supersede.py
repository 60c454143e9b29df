"""Records that a later record of the same log replaces or takes back.

Their lines are still in the file, so the turns stay; only their events are retired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiond.engines.slices import Turn
from sessiond.reading.tracked import Tracked
from sessiond.sourcekit.base import Retire
from sessiond.writing.sessions import Session

if TYPE_CHECKING:
    from sessiond.writing.transaction import Transaction

_HERE = "source_id = ?1 AND session_id = ?2 AND offset < ?3"
_STANDS = "retired = 0 AND superseded = 0"
# A prompt may be in a record that is a copy of another session's.
_PROMPTED = (
    "EXISTS (SELECT 1 FROM events e WHERE e.turn_id = coalesce(t.copy_of, t.id)"
    " AND e.type = 'user')"
)


def apply(
    transaction: Transaction, source: Tracked, session: Session, turn: Turn, operation: Retire
) -> None:
    """Retire the events of the records that an operation names."""
    back = bool(operation.onward or operation.prompts)
    find = _onward if back else _replaced
    found = find(transaction, source, session, turn, operation)
    for turn_id in found:
        transaction.copies.supersede(turn_id, session.id, source.generation)
        transaction.events.left(turn_id)
    if found:
        transaction.counters.changed(session.id)
        transaction.titles.prompts_left(session)
    if found and back:
        transaction.events.taken_back(found)


def _replaced(
    transaction: Transaction, source: Tracked, session: Session, turn: Turn, operation: Retire
) -> list[int]:
    """Turns with the id of the operation; without a query if it is that of the record itself."""
    native_id = operation.native_id
    if native_id is not None and native_id == turn.record.native_id:
        found = transaction.copies.standing(native_id, source.id, session.id)
        if found:
            transaction.turns.flush()
        return found
    transaction.turns.flush()
    # Without the plus signs SQLite would read every turn of the session.
    return _ids(
        transaction,
        "native_key = short_key(?4) AND native_id = ?4 AND +source_id = ?1 AND +session_id = ?2"
        " AND offset < ?3",
        (source.id, session.id, turn.offset, native_id),
    )


def _onward(
    transaction: Transaction, source: Tracked, session: Session, turn: Turn, operation: Retire
) -> list[int]:
    transaction.turns.flush()
    here = (source.id, session.id, turn.offset)
    if operation.prompts:
        start = _nth_prompt(transaction, here, operation.prompts)
    else:
        found = _first_of(transaction, here, operation.native_id)
        start = (1 << 62 if found is None else found + 1) if operation.after else found or 0
    return _ids(transaction, f"{_HERE} AND offset >= ?4", (*here, start))


def _ids(transaction: Transaction, condition: str, values: tuple[object, ...]) -> list[int]:
    return [
        turn_id
        for (turn_id,) in transaction.db.execute(
            f"SELECT id FROM turns WHERE {condition} AND {_STANDS}", values
        )
    ]


def _nth_prompt(transaction: Transaction, here: tuple[object, ...], count: int) -> int:
    """The offset of the nth prompt from the end, or of the first if there are fewer."""
    found: list[Any] = transaction.db.execute(
        f"SELECT offset FROM turns t WHERE {_HERE} AND {_STANDS} AND {_PROMPTED}"
        " ORDER BY offset DESC LIMIT ?4",
        (*here, count),
    ).fetchall()
    return int(found[-1][0]) if found else 1 << 62


def _first_of(
    transaction: Transaction, here: tuple[object, ...], native_id: str | None
) -> int | None:
    """The offset of a record, if it is known."""
    offset = transaction.db.execute(
        "SELECT min(offset) FROM turns WHERE native_key = short_key(?4) AND native_id = ?4"
        f" AND +source_id = ?1 AND +session_id = ?2 AND offset < ?3 AND {_STANDS}",
        (*here, native_id),
    ).get
    return None if offset is None else int(offset)
