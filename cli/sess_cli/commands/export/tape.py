"""`sess export tape`: one session as a tape for VHS."""

from __future__ import annotations

import os

from sess_cli import options
from sess_cli.commands.export import shared
from sess_cli.commands.export.film_options import THEME, Asked, Shape, ThemeName

COLUMNS = 136


def tape(
    session: options.SessionId,
    *,
    output: shared.Output = None,
    asked: Asked,
    theme: ThemeName = THEME,
    shape: Shape,
    masks: shared.Masks,
    force: shared.Force = False,
    no_sync: options.NoSync = False,
) -> None:
    """Export a session as a VHS tape; no shell runs any of it."""
    from sess_cli.export.film import tape as tapes

    width, height, font_size = shape.sized()
    shared.check_output(output, force=force)
    redactor = masks.redactor()
    with shared.opened(session, redactor, sync=not no_sync) as story:
        path = shared.target(output, shared.default_name(story, "tape"), force=force)
        named = shared.default_name(story, "tape") if path == "-" else os.path.basename(path)
        made = tapes.lines(
            asked.storyboard(story, COLUMNS),
            output=f"{os.path.splitext(named)[0]}.mp4",
            ident=story.row.session,
            width=width,
            height=height,
            font_size=font_size,
            theme=tapes.theme_name(theme),
            speed=asked.speed,
            duration=asked.milliseconds,
            utc=asked.utc,
        )
        shared.put_lines((f"{line}\n" for line in made), path, redactor)
