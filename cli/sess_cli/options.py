"""What several commands share: options, citations, and asking before something is deleted."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import apsw
import typer

from sess_common import times
from sess_common.classes import dataclass
from sess_common.errors import Exit, SessError
from sess_schema import citations
from sess_schema.ids import EventId
from sess_schema.queries import known, sessions
from sess_schema.queries.fields import FIELDS
from sess_schema.queries.sessions import Listing, SessionRow

if TYPE_CHECKING:
    from sess_redaction import Redactor

Texts = list[str] | None


def of_field(name: str) -> Any:
    """The option of a filter."""
    field = FIELDS[name]
    return typer.Option(f"--{name}", metavar=field.metavar, help=field.help)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
NoSync = Annotated[bool, typer.Option("--no-sync", help="Do not update the index first.")]
# Of every command that updates the index: `parsing.expanded` adds it.
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until all transcripts are read, however many.")
]
NoPager = Annotated[bool, typer.Option("--no-pager", help="Do not use a pager.")]
Agents = Annotated[Texts, of_field("agent")]
Projects = Annotated[Texts, of_field("project")]
Models = Annotated[Texts, of_field("model")]
Branches = Annotated[Texts, of_field("branch")]
Labels = Annotated[Texts, of_field("label")]
Pinned = Annotated[bool, typer.Option("--pinned", help="Only sessions that are pinned.")]
Since = Annotated[str | None, of_field("since")]
Until = Annotated[str | None, of_field("until")]
Utc = Annotated[bool, typer.Option("--utc", help="Use UTC instead of local time.")]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="TIME", help="Only sessions that ended before: 90d."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Only list what would be deleted.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Superseded = Annotated[
    bool, typer.Option("--superseded", help="Include records that the transcript has replaced.")
]
SessionIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="Session IDs, or their first characters."),
]
SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Session ID, its first 4 or more characters, or `last`.")
]
TranscriptNumber = Annotated[
    str | None,
    typer.Option("--source", metavar="N", help="Which transcript, if there are several."),
]
Relink = Annotated[
    bool,
    typer.Option(
        "--relink/--no-relink",
        help="Let records that follow or name one that goes name the next one that stays.",
    ),
]
DryCut = Annotated[bool, typer.Option("--dry-run", "-n", help="Only show what would be cut.")]
ForceCut = Annotated[
    bool, typer.Option("--force", help="Cut despite warnings, or soon after the agent has written.")
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write to this file; - for stdout."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is no earlier export.")]
NoRedact = Annotated[
    bool, typer.Option("--no-redact", help="Do not mask secrets and home directories.")
]
Redact = Annotated[
    list[str] | None,
    typer.Option(
        "--redact",
        metavar="REGEX",
        help="Also mask what matches, or its first group. May be repeated.",
    ),
]
RedactionReport = Annotated[
    bool, typer.Option("--redaction-report", help="List the kind and place of each mask on stderr.")
]

# `shells.asked` reads them, with or without a shell; here they are for --help.
InstallCompletion = Annotated[
    bool,
    typer.Option(
        "--install-completion", help="Install completion for bash, zsh or fish, for both programs."
    ),
]
ShowCompletion = Annotated[
    bool, typer.Option("--show-completion", help="Print the completion script of a shell.")
]


@dataclass
class Matching:
    """Sessions that match filters."""

    agents: Agents = None
    projects: Projects = None
    labels: Labels = None
    pinned: Pinned = False
    since: Since = None
    until: Until = None

    @property
    def is_given(self) -> bool:
        named = (self.agents, self.projects, self.labels, self.since, self.until)
        return self.pinned or any(one is not None for one in named)

    def listing(self, *, utc: bool, **more: Any) -> Listing:
        return sessions.Listing(
            self.agents or (),
            self.projects or (),
            labels=self.labels or (),
            pinned=self.pinned,
            since=times.since(self.since, utc=utc) if self.since is not None else None,
            until=times.until(self.until, utc=utc) if self.until is not None else None,
            **more,
        )

    def rows(self, db: apsw.Connection, listing: Listing) -> list[SessionRow]:
        known.check(db, listing)
        rows = [*listing.rows(db)]
        if not rows and (problem := known.nothing(db, listing)):
            raise problem
        return rows


@dataclass
class DeletionOptions:
    """Sessions with these IDs that match, for commands that delete something of them."""

    sessions: SessionIds = None
    agents: Agents = None
    projects: Projects = None
    older_than: OlderThan = None
    dry_run: DryRun = False
    yes: Yes = False
    utc: Utc = False

    def check(self, verb: str) -> None:
        if not (self.sessions or self.agents or self.projects or self.older_than):
            hint = "name sessions, or use --project, --agent, --older-than"
            raise SessError(f"nothing to {verb}", hint=hint)

    def rows(self, db: apsw.Connection) -> list[SessionRow]:
        """Those that all filters match; among the ones with these IDs if any are given."""
        named = {row.key: row for row in (sessions.resolve(db, id_) for id_ in self.sessions or ())}
        if not (self.agents or self.projects or self.older_than):
            return [*named.values()]
        before = times.since(self.older_than, utc=self.utc) if self.older_than else None
        listing = sessions.Listing(self.agents or (), self.projects or (), every=True, limit=0)
        known.check(db, listing)
        return [
            row
            for row in listing.rows(db)
            if (before is None or (row.ended is not None and row.ended < before))
            and (not self.sessions or row.key in named)
        ]

    def agreed(self, question: str, does: str) -> bool:
        return self.yes or confirmed(question, does)


@dataclass(frozen=True)
class CutOptions:
    """How records are cut out of a session."""

    dry_run: DryCut = False
    yes: Yes = False
    force: ForceCut = False
    source: TranscriptNumber = None
    as_json: AsJson = False


@dataclass
class Masks:
    """What is masked."""

    no_redact: NoRedact = False
    redact: Redact = None
    redaction_report: RedactionReport = False

    @cached_property
    def redactor(self) -> Redactor | None:
        """What masks secrets and homes, as the options and config.toml say."""
        return self.of("~")

    def of(self, home: str | None) -> Redactor | None:
        from collections import Counter

        from sess_cli.export.story import usual_redactor

        if self.no_redact and (self.redact or self.redaction_report):
            raise SessError("--no-redact cannot be combined with --redact or --redaction-report")
        if self.no_redact:
            return None
        redactor = usual_redactor(self.redact or (), home)
        redactor.places = Counter() if self.redaction_report else None
        return redactor


def confirmed(question: str, does: str) -> bool:
    """Whether somebody on a terminal says yes."""
    if not sys.stdin.isatty():
        raise SessError("nobody to ask", hint=f"`--yes` {does} without asking")
    return typer.confirm(question, err=True)


def split_citation(citation: str) -> tuple[str, str | None]:
    """The session and the event of a citation; no event if it names a whole session."""
    session, mark, event = citation.rpartition("#")
    if mark and session and citations.looks_like_one(event):
        return session, event
    return citation, None


def cited_event(
    db: apsw.Connection, row: SessionRow, key: str, *, superseded: bool = False
) -> EventId:
    """The event that a citation names."""
    event = citations.resolve(db, row.key, key, superseded=superseded)
    if event is not None:
        return event
    rewritten = citations.resolve(db, row.key, key, superseded=True) is not None
    raise SessError(
        f"session {row.session} {'no longer has' if rewritten else 'has no'} event #{key}",
        hint=f"`sess show {row.session}#{key} --superseded` shows the replaced record"
        if rewritten
        else f"`sess show {row.session}` shows all events",
        code=Exit.NOTHING_FOUND,
    )
