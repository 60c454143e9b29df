"""`sessiond start`: run the daemon."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("start")(start)


def start(
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background.")] = False,
) -> None:
    """Run the daemon in the foreground."""
    from sess_schema import paths  # noqa: PLC0415
    from sessiond.service import control, logs, loop  # noqa: PLC0415

    if detach:
        raise typer.Exit(control.start_detached(typer.echo))
    logs.set_up(paths.home().log, foreground=True)
    raise typer.Exit(loop.serve())
