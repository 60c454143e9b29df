"""`sessiond salvage`: take what is intact out of a damaged index."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("salvage")(salvage)


def salvage(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A damaged or moved-aside index.")],
) -> None:
    """Load what is intact of a damaged index into this one.

    The file is only read. What the index has already is left alone, and what is lost is named.
    Exits with 5 if something is lost.
    """
    from sessiond.service import rescue  # noqa: PLC0415

    raise typer.Exit(rescue.salvage(file))
