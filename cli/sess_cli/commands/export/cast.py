"""`sess export cast`: one session as an asciinema recording."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli import options
from sess_cli.commands.export import shared
from sess_cli.commands.export.film_options import (
    FPS,
    MAX_OUTPUT,
    THEME,
    Asked,
    MaxOutput,
    ThemeName,
)

COLUMNS, LINES = 136, 36  # about what a picture of the usual size has


def cast(
    session: options.SessionId,
    *,
    output: shared.Output = None,
    asked: Asked,
    max_output: MaxOutput = MAX_OUTPUT,
    theme: ThemeName = THEME,
    columns: Annotated[
        int, typer.Option("--columns", min=20, max=500, help="Characters per line.")
    ] = COLUMNS,
    lines: Annotated[
        int, typer.Option("--lines", min=5, max=200, help="Lines on the screen.")
    ] = LINES,
    masks: shared.Masks,
    force: shared.Force = False,
    no_sync: options.NoSync = False,
) -> None:
    """Export a session as an asciinema recording."""
    from sess_cli.export.film import themes
    from sess_cli.export.film.cast import lines as cast_lines

    themes.theme(theme)
    shared.check_output(output, force=force)
    redactor = masks.redactor()
    with shared.opened(session, redactor, sync=not no_sync) as story:
        film = asked.film(story, columns, lines, fps=FPS, max_output=max_output)
        made = cast_lines(film, theme_name=theme, timestamp=story.row.started)
        path = shared.target(output, shared.default_name(story, "cast"), force=force)
        shared.put_lines(made, path, redactor, json=True)
