"""`sessiond restore-backup`: put a backup in the place of the index."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("restore-backup")(restore_backup)


def restore_backup(
    backup: Annotated[str, typer.Argument(metavar="FILE|DIR", help="What `sess backup` wrote.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="NAME", help="Which backup of a folder; default: the last."),
    ] = None,
) -> None:
    """Use a backup as the index. The index it replaces is kept, and what changed since is read."""
    from sessiond.service import rescue  # noqa: PLC0415

    raise typer.Exit(rescue.restore_backup(backup, at))
