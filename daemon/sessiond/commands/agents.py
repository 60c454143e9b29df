"""`sessiond agents`: what is read of which agent."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiond.commands.options import AsJson


def register(app: typer.Typer) -> None:
    app.command("agents")(agents)


def agents(
    *,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Also agents that are not on this machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the agents, and what is read of each.

    Also where each is looked for, what was found there, and what is not read and why.
    """
    from sessiond.service.agents import show  # noqa: PLC0415

    raise typer.Exit(show(as_json=as_json, every=every))
