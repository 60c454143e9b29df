"""Options that several commands share, each defined once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sess_schema.queries.filters import FIELDS

Texts = list[str] | None


def of_field(name: str) -> Any:
    """The option of a filter."""
    field = FIELDS[name]
    return typer.Option(f"--{name}", metavar=field.metavar, help=field.help)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
NoSync = Annotated[bool, typer.Option("--no-sync", help="Do not update the index first.")]
NoPager = Annotated[bool, typer.Option("--no-pager", help="Do not use a pager.")]
Agents = Annotated[Texts, of_field("agent")]
Projects = Annotated[Texts, of_field("project")]
Models = Annotated[Texts, of_field("model")]
Branches = Annotated[Texts, of_field("branch")]
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
    str,
    typer.Argument(metavar="ID", help="Session ID, its first 4 or more characters, or `last`."),
]
TranscriptNumber = Annotated[
    str | None,
    typer.Option("--source", metavar="N", help="Which transcript, if there are several."),
]
Relink = Annotated[
    bool,
    typer.Option("--relink", help="Let records whose parent goes follow the next one that stays."),
]

# `shells.asked` reads them, with or without a shell; here they are for --help.
InstallCompletion = Annotated[
    bool,
    typer.Option(
        "--install-completion", help="Install completion for bash, zsh or fish: name it after."
    ),
]
ShowCompletion = Annotated[
    bool, typer.Option("--show-completion", help="Print the completion script of a shell.")
]
