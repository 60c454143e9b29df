"""Options that several commands take together, and asking before something is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sess_cli.options import (
    Agents,
    AsJson,
    DryRun,
    OlderThan,
    Projects,
    SessionIds,
    Since,
    TranscriptNumber,
    Until,
    Utc,
    Yes,
)

if TYPE_CHECKING:
    import apsw

    from sess_schema.queries.sessions import Listing, SessionRow


@dataclass(slots=True)
class Matching:
    """Sessions that match filters."""

    agents: Agents = None
    projects: Projects = None
    since: Since = None
    until: Until = None

    @property
    def is_given(self) -> bool:
        return any(one is not None for one in (self.agents, self.projects, self.since, self.until))

    def listing(self, *, utc: bool, **more: Any) -> Listing:
        from sess_common import times
        from sess_schema.queries.sessions import Listing

        return Listing(
            self.agents or (),
            self.projects or (),
            since=times.since(self.since, utc=utc) if self.since is not None else None,
            until=times.until(self.until, utc=utc) if self.until is not None else None,
            **more,
        )

    def rows(self, db: apsw.Connection, listing: Listing) -> list[SessionRow]:
        from sess_common.errors import Exit, SessError

        found = [*listing.rows(db)]
        if not found:
            hint = "`sess list` lists them"
            raise SessError("no session matches", hint=hint, code=Exit.NOTHING_FOUND)
        return found


@dataclass(slots=True)
class Doomed:
    """Sessions with these IDs that match, for commands that delete something of them."""

    sessions: SessionIds = None
    agents: Agents = None
    projects: Projects = None
    older_than: OlderThan = None
    dry_run: DryRun = False
    yes: Yes = False
    utc: Utc = False

    def check(self, verb: str) -> None:
        from sess_common.errors import SessError

        if not (self.sessions or self.agents or self.projects or self.older_than):
            hint = "name sessions, or use --project, --agent, --older-than"
            raise SessError(f"nothing to {verb}", hint=hint)

    def rows(self, db: apsw.Connection) -> list[SessionRow]:
        """Those that all filters match; among the ones with these IDs if any are given."""
        from sess_common import times
        from sess_schema.queries import sessions

        found = {row.key: row for row in (sessions.resolve(db, one) for one in self.sessions or ())}
        if self.agents or self.projects or self.older_than:
            before = times.since(self.older_than, utc=self.utc) if self.older_than else None
            listing = sessions.Listing(self.agents or (), self.projects or (), every=True, limit=0)
            matching = {
                row.key: row
                for row in listing.rows(db)
                if before is None or (row.ended is not None and row.ended < before)
            }
            kept = matching.keys() & found.keys() if self.sessions else matching.keys()
            found = {key: row for key, row in matching.items() if key in kept}
        return [*found.values()]


@dataclass(frozen=True, slots=True)
class Editing:
    """How records are cut out of a session."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only show what would be cut.")
    ] = False
    yes: Yes = False
    force: Annotated[
        bool,
        typer.Option("--force", help="Cut despite warnings, or soon after the agent has written."),
    ] = False
    source: TranscriptNumber = None
    as_json: AsJson = False


def agreed(question: str, does: str) -> bool:
    """Whether somebody on a terminal says yes."""
    import sys

    from sess_common.errors import SessError

    if not sys.stdin.isatty():
        raise SessError("nobody to ask", hint=f"`--yes` {does} without asking")
    return typer.confirm(question, err=True)
