"""`sessiond repair`: mend a damaged index."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("repair")(repair)


def repair(
    *,
    accept_losses: Annotated[
        bool,
        typer.Option(
            "--accept-losses",
            help="Accept what cannot be mended: it is named once more, and no longer a failure.",
        ),
    ] = False,
) -> None:
    """Mend the index without losing what is archived.

    Full text, references and sums are made again from the archive, damaged pieces are read again
    from files that still have them. If the database itself is damaged, everything intact in it goes
    into a new one, and the damaged one is kept. What is lost is named.
    Exits with 4 if something is lost, unless --accept-losses is given.
    """
    from sessiond.service import rescue  # noqa: PLC0415

    raise typer.Exit(rescue.repair(accept_losses=accept_losses))
