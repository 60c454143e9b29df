"""`sess mcp`: a server that agents start for themselves."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_common.errors import SessError


def mcp(
    *,
    profile: Annotated[
        str,
        typer.Option("--profile", metavar="NAME", help="default, or full: also list and stats."),
    ] = "default",
) -> None:
    """Serve the index to an agent over MCP (stdin and stdout).

    Agents start it themselves: `sess connect` writes it into their settings. Five tools: recall,
    search, read, similar_failures, file_history. Nothing is sent anywhere, and no model is asked.
    """
    from sess_cli.mcp.server import serve

    if profile not in ("default", "full"):
        raise SessError(f"no such profile: {profile}", hint="default, full")
    serve(full=profile == "full")
