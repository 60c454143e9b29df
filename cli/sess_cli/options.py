"""Options that several commands share, each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
NoSync = Annotated[bool, typer.Option("--no-sync", help="Do not update the index first.")]
NoPager = Annotated[bool, typer.Option("--no-pager", help="Do not use a pager.")]
Agents = Annotated[
    list[str] | None, typer.Option("--agent", metavar="NAME", help="Only this agent's sessions.")
]
Projects = Annotated[
    list[str] | None,
    typer.Option(
        "--project",
        metavar="PATH",
        help="Only projects below PATH, such as `.`, or with PATH in their path.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From this time on: 7d, yesterday, monday, 'last week', 12:00, 2026-02-20.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Up to this time; a date includes the whole day."),
]
Utc = Annotated[bool, typer.Option("--utc", help="Use UTC instead of local time.")]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="TIME", help="Only sessions that ended before: 90d."),
]
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
Transcript = Annotated[
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
