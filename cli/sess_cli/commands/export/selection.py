"""Which sessions an export is about: those that are named, or those that match."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.choosing import Matching

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SessionId
    from sess_schema.queries.sessions import Listing, SessionRow

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID]...", help="Session IDs, their first 4 or more characters, or `last`."
    ),
]


@dataclass(slots=True)
class Selection(Matching):
    """Sessions with these IDs, or those that match; as one document if there are several."""

    ids: Ids = None

    def check(self, *, all_if_none: bool = False) -> None:
        from sess_common.errors import SessError

        if self.ids and self.is_given:
            raise SessError("an ID cannot be combined with --agent, --project, --since or --until")
        if not self.ids and not self.is_given and not all_if_none:
            hint = "name one, or choose with --project or --since"
            raise SessError("no session named", hint=hint)

    @property
    def is_one(self) -> bool:
        """Whether one session is named: it is exported alone, and not as one of several."""
        return len(self.ids or ()) == 1

    def rows(self, db: apsw.Connection, listing: Listing) -> list[SessionRow]:
        """Oldest first."""
        from sess_schema.queries import sessions

        if not self.ids:
            # Without `super()`, which a dataclass with slots does not support.
            return _oldest_first(Matching.rows(self, db, listing))
        rows = {row.key: row for row in (sessions.resolve(db, given) for given in self.ids)}
        return _oldest_first([row for row in rows.values() if not _is_below(db, row, rows)])


def _oldest_first(rows: list[SessionRow]) -> list[SessionRow]:
    return sorted(rows, key=lambda row: (row.started or 0, row.key))


def _is_below(db: apsw.Connection, row: SessionRow, others: Container[SessionId]) -> bool:
    """Whether it is a subagent of another chosen session, which includes it."""
    above, seen = row.parent_key, {row.key}
    while above is not None and above not in seen:
        if above in others:
            return True
        seen.add(above)
        above = db.execute("SELECT parent_id FROM sessions WHERE id = ?", (above,)).get
    return False
