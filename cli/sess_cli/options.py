"""Options that several commands share, each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]
NoSync = Annotated[bool, typer.Option("--no-sync", help="Do not bring the index up to date first.")]
Agents = Annotated[
    list[str] | None, typer.Option("--agent", metavar="NAME", help="Only this agent's sessions.")
]
Projects = Annotated[
    list[str] | None,
    typer.Option(
        "--project", metavar="PATH", help="Only below this directory (`.` is here) or part of one."
    ),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="7d, 36h, 2w, yesterday, 2026-02-20, ISO time."),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Up to this time; a date includes its day."),
]
Utc = Annotated[bool, typer.Option("--utc", help="Times are UTC, not local.")]
Superseded = Annotated[
    bool, typer.Option("--superseded", help="Also what was rewritten in the transcript since.")
]
SessionId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Session id, its first 4 characters or more, or `last`."),
]
