"""`sessiond logs`: the daemon's log."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("logs")(logs)


def logs(
    lines: Annotated[
        int, typer.Option("-n", "--lines", min=1, help="Number of lines to show.")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new lines as they arrive.")
    ] = False,
) -> None:
    """Show the daemon's log."""
    from sess_schema import paths  # noqa: PLC0415
    from sessiond.service import logs as log_file  # noqa: PLC0415

    for line in log_file.tail_log(paths.home().log, lines, follow=follow):
        typer.echo(line)
