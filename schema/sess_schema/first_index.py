"""Whether an index was ever complete: half of a first one would answer "nothing found".

A new index has a mark, which the first walk over all places removes when it ends. A walk that was
killed leaves it to the next one.
"""

from __future__ import annotations

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

_FACT = "first_walk_unfinished"


def begin(db: apsw.Connection) -> None:
    db.execute("INSERT INTO facts VALUES (?, '')", (_FACT,))


def end(db: apsw.Connection) -> None:
    """Everything was read once."""
    if is_unfinished(db):
        db.execute("DELETE FROM facts WHERE name = ?", (_FACT,))


def is_unfinished(db: apsw.Connection) -> bool:
    return db.execute("SELECT 1 FROM facts WHERE name = ?", (_FACT,)).get is not None
