"""`sessiond config`: the configuration that applies, and where it is."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiond.commands.options import AsJson


def register(app: typer.Typer) -> None:
    app.command("config")(config)


def config(
    as_json: AsJson = False,
    edit: Annotated[
        bool, typer.Option("--edit", help="Open the file in $VISUAL, $EDITOR or vi.")
    ] = False,
) -> None:
    """Show the settings, and where each comes from.

    docs/config.md describes every key. A running daemon reads the file when it starts.
    """
    from sessiond.service import configuring  # noqa: PLC0415

    if edit:
        configuring.edit()
    else:
        configuring.show(as_json=as_json)
