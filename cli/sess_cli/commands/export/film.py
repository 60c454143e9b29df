"""`sess export video` and `gif`: one session as a film."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli import options
from sess_cli.commands.export import shared
from sess_cli.commands.export.film_options import (
    FPS,
    MAX_OUTPUT,
    THEME,
    Asked,
    MaxOutput,
    Shape,
    ThemeName,
)
from sess_cli.commands.export.tape import COLUMNS as TAPE_COLUMNS

if TYPE_CHECKING:
    from sess_cli.export.story import Story


class Backend(StrEnum):
    BUILTIN = "builtin"
    VHS = "vhs"


def _pictures(suffix: str, about: str) -> Callable[..., None]:
    """The command that writes files with this suffix."""

    def command(
        session: options.SessionId,
        *,
        output: Annotated[
            str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")
        ] = None,
        asked: Asked,
        max_output: MaxOutput = MAX_OUTPUT,
        captions: Annotated[
            bool,
            typer.Option("--captions", help="Also write what is said as WebVTT, beside the film."),
        ] = False,
        theme: ThemeName = THEME,
        shape: Shape,
        fps: Annotated[int, typer.Option("--fps", min=2, max=60, help="Frames per second.")] = FPS,
        backend: Annotated[
            Backend, typer.Option("--backend", help="What draws the film.")
        ] = Backend.BUILTIN,
        open_it: shared.Open = False,
        masks: shared.Masks,
        force: shared.Force = False,
        no_sync: options.NoSync = False,
    ) -> None:
        picture = _Picture(suffix, theme, *shape.sized(gif=suffix == "gif"), fps, max_output)
        picture.check(backend, output)
        shared.check_output(output, force=force)
        redactor = masks.redactor()
        with shared.opened(session, redactor, sync=not no_sync) as story:
            path = shared.target(output, shared.default_name(story, suffix), force=force)
            if captions:
                shared.check_output(_beside(path), force=force)
            if backend is Backend.VHS:
                picture.film_by_vhs(story, asked, path)
            else:
                picture.film(story, asked, path, captions=captions)
            shared.report(path, redactor)
        if open_it:
            shared.open_file(path)

    command.__doc__ = about
    return command


video = _pictures("mp4", "Export a session as a video: MP4, or WebM if FILE ends in .webm.")
gif = _pictures("gif", "Export a session as an animated GIF.")


@dataclass(slots=True)
class _Picture:
    """How a film is drawn."""

    suffix: str
    theme: str
    width: int
    height: int
    font_size: int
    fps: int
    max_output: int

    def check(self, backend: Backend, output: str | None) -> None:
        """Fail before anything is read."""
        from sess_cli.export.film import encode, themes, vhs
        from sess_common.errors import SessError

        if output == "-":
            raise SessError("cannot write a film to stdout", hint="use `-o FILE`")
        if output:
            encode.check_name(output, gif=self.suffix == "gif")
        themes.theme(self.theme)
        if backend is Backend.VHS:
            vhs.program()
        else:
            _need_extra()

    def film(self, story: Story, asked: Asked, path: str, *, captions: bool) -> None:
        from sess_cli.export import files
        from sess_cli.export.film import captions as said
        from sess_cli.export.film import encode
        from sess_cli.export.film.fonts import grid
        from sess_common.program import say

        columns, lines = grid(self.width, self.height, self.font_size)
        made = asked.film(story, columns, lines, fps=self.fps, max_output=self.max_output)
        with _progress() as progress:
            warnings = encode.write(
                made,
                path,
                theme=self.theme,
                width=self.width,
                height=self.height,
                font_size=self.font_size,
                fps=self.fps,
                progress=progress,
            )
        for warning in warnings:
            say(warning)
        if captions:
            with files.new_file(_beside(path)) as file:
                file.writelines(line.encode("utf-8", "replace") for line in said.lines(made))

    def film_by_vhs(self, story: Story, asked: Asked, path: str) -> None:
        from sess_cli.export import files
        from sess_cli.export.film import tape, vhs

        name = f"film{os.path.splitext(path)[1].lower()}"
        lines = tape.lines(
            asked.storyboard(story, TAPE_COLUMNS, self.max_output),
            output=name,
            ident=story.row.session,
            width=self.width,
            height=self.height,
            font_size=self.font_size,
            theme=tape.theme_name(self.theme),
            speed=asked.speed,
            duration=asked.milliseconds,
            utc=asked.utc,
        )
        with files.new_file(path) as file:
            vhs.film(lines, name, file)


def _beside(path: str) -> str:
    return f"{os.path.splitext(path)[0]}.vtt"


def _need_extra() -> None:
    from importlib.util import find_spec

    from sess_common.errors import Exit, SessError

    if find_spec("av") is None or find_spec("PIL") is None:
        raise SessError(
            "films need PyAV and Pillow",
            hint="`pip install 'sessiond[video]'`; `sess export cast` and `tape` work without",
            code=Exit.PROGRAM_FAILED,
        )


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar; None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("filming"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
