"""`sessiond install` and `sessiond uninstall`: the background service."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("install")(install)
    app.command("uninstall")(uninstall)


def install(
    hardened: Annotated[
        bool, typer.Option("--hardened", help="Also sandbox it with mount namespaces (systemd).")
    ] = False,
) -> None:
    """Install and start the background service.

    A systemd user unit on Linux, a launchd agent on macOS.
    """
    from sessiond.service import install as service_files  # noqa: PLC0415

    raise typer.Exit(service_files.install(hardened=hardened, say=typer.echo))


def uninstall() -> None:
    """Stop and remove the service; the index is kept."""
    from sessiond.service import install as service_files  # noqa: PLC0415

    raise typer.Exit(service_files.uninstall(say=typer.echo))
