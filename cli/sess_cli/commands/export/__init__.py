"""`sess export`: a session, or all of them, as files. Each format is one file in this folder."""

from __future__ import annotations

import typer

from sess_cli.commands.export import film, html, json_, md, site, sqlite

FORMATS = (html, site, md, json_, sqlite, film)


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Write sessions as files to read, share and keep.", rich_markup_mode=None
    )
    for one in FORMATS:
        one.register(group)
    app.add_typer(group, name="export")
