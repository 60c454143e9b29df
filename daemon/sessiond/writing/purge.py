"""Removes what was read from turns, to read them again: turns and events keep their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessiond.writing.event_rows import Numbers
    from sessiond.writing.transaction import Transaction

_EVENTS = "(SELECT id FROM events WHERE turn_id IN purged)"
_NUMBERS = (
    "SELECT id, turn_id, iif(unjoined IS NULL, type, 'result'), coalesce(call_id, row_number()"
    " OVER (PARTITION BY turn_id, type, call_id IS NULL ORDER BY block) - 1)"
    " FROM events WHERE turn_id IN purged"
)


def purge(transaction: Transaction, turns: str) -> None:
    """Remove the turns that a query selects, with their events and usage.

    Copies that stay inherit them; their ids remain in the temporary table `purged`.
    """
    db = transaction.db
    rows = transaction.events.rows
    rows.first_new_id()  # count on from the highest numbers, removed or not
    transaction.turns.new_id()
    db.execute("CREATE TEMP TABLE IF NOT EXISTS purged (id INTEGER PRIMARY KEY)")
    db.execute("DELETE FROM purged")
    db.execute(f"INSERT INTO purged {turns}")
    copied: list[Any] = db.execute(
        "SELECT DISTINCT t.id, t.session_id FROM turns c JOIN turns t ON t.id = c.copy_of"
        " WHERE t.id IN purged AND c.id NOT IN purged AND c.retired = 0"
    ).fetchall()
    for turn_id, session_id in copied:
        transaction.copies.retire(turn_id, session_id, 0)
    numbers: Numbers = {(turn, type_, name): id_ for id_, turn, type_, name in db.execute(_NUMBERS)}
    rows.unindex(numbers.values())
    rows.reuse(numbers)
    places = db.execute("SELECT source_id, offset, id FROM turns WHERE id IN purged")
    transaction.turns.reuse({(source, offset): id_ for source, offset, id_ in places})
    for table in ("files", "commits", "edits"):
        db.execute(f"DELETE FROM {table} WHERE event_id IN {_EVENTS}")
    db.execute(f"DELETE FROM event_texts WHERE id IN {_EVENTS}")
    for table, column in (("events", "turn_id"), ("usage", "turn_id"), ("turns", "id")):
        db.execute(f"DELETE FROM {table} WHERE {column} IN purged")
