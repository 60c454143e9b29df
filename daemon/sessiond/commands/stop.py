"""`sessiond stop` and `sessiond restart`."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command("stop")(stop)
    app.command("restart")(restart)


def stop() -> None:
    """Stop the daemon; nothing is left half written."""
    from sessiond.service import control  # noqa: PLC0415

    raise typer.Exit(control.stop(typer.echo))


def restart() -> None:
    """Stop the daemon if it runs, and start it in the background."""
    from sessiond.service import control  # noqa: PLC0415

    raise typer.Exit(control.restart(typer.echo))
