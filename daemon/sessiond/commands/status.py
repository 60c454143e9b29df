"""`sessiond status`: how the daemon and each source are doing."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiond.commands.options import AsJson


def register(app: typer.Typer) -> None:
    app.command("status")(status)


def status(
    as_json: AsJson = False,
    every: Annotated[bool, typer.Option("--all", help="List every source.")] = False,
    health: Annotated[
        bool,
        typer.Option(
            "--health",
            help="Print one line; exit with 3 if the daemon does not run or respond, 4 if it cannot"
            " write the index, 5 if files cannot be read.",
        ),
    ] = False,
    prometheus: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Write the figures for Prometheus; - is standard output."
        ),
    ] = "",
) -> None:
    """Show what is watched, read, behind and skipped, and why."""
    from sessiond.service.status import show  # noqa: PLC0415

    raise typer.Exit(show(as_json=as_json, every=every, only_health=health, metrics=prometheus))
