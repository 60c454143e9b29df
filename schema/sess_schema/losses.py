"""Archived bytes that are lost for good and accepted as lost (`repair --accept-losses`)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SourceId

_FACT = "accepted_losses"


class Loss(NamedTuple):
    """Bytes of a source, which is named by its path."""

    path: str
    retired: int
    offset: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.offset


def accepted(db: apsw.Connection) -> set[Loss]:
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (_FACT,)).get
    return {Loss(*one) for one in json.loads(stored or "[]")}


def accept(db: apsw.Connection, more: Iterable[Loss]) -> None:
    """Remember more of them; what is left of the damaged pieces is dropped."""
    new = [*more]
    with db:
        for loss in new:
            db.execute(
                "DELETE FROM chunks WHERE retired = ? AND offset = ?"
                " AND source_id = (SELECT id FROM sources WHERE path = ?)",
                (loss.retired, loss.offset, loss.path),
            )
        value = json.dumps(sorted(accepted(db).union(new)))
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_FACT, value))


def is_accepted(db: apsw.Connection, source: SourceId, offset: int) -> bool:
    """Whether the bytes at a place of the file as last read are known to be lost."""
    path = db.execute("SELECT path FROM sources WHERE id = ?", (source,)).get
    return any(
        one.path == path and one.retired == 0 and one.offset <= offset < one.end
        for one in accepted(db)
    )
