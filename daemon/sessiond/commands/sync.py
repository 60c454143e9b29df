"""`sessiond sync`: index new data once."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiond.commands.options import AsJson


def register(app: typer.Typer) -> None:
    app.command("sync")(sync)


def sync(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Files or directories (default: all places).")
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing unless it fails.")
    ] = False,
) -> None:
    """Index new data once, then exit."""
    from sessiond.service import one_pass  # noqa: PLC0415

    raise typer.Exit(one_pass.run(paths or [], as_json=as_json, quiet=quiet))
