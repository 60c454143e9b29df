"""`sessiond stop` and `sessiond restart`."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command("stop")(stop)
    app.command("restart")(restart)


def stop() -> None:
    """Stop the daemon cleanly."""
    from sessiond.service import control  # noqa: PLC0415

    raise typer.Exit(control.stop(typer.echo))


def restart() -> None:
    """Restart the daemon in the background, or start it."""
    from sessiond.service import control  # noqa: PLC0415

    raise typer.Exit(control.restart(typer.echo))
