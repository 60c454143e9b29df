"""`sess export video`, `gif`, `cast` and `tape`: one session as a film."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from math import isnan
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.commands.export import shared
from sess_cli.options import NoSync, Output, SessionId, Utc
from sess_cli.render import amounts
from sess_common import installation
from sess_common.classes import dataclass
from sess_common.errors import Exit, SessError
from sess_common.program import say

if TYPE_CHECKING:
    from sess_cli.export.film.rows import Film
    from sess_cli.export.film.scenes import Storyboard
    from sess_cli.export.story import Story


FPS, THEME = 15, "mocha"
MAX_OUTPUT = 12
COLUMNS, LINES = 136, 36  # about what a picture of the usual size has
_DURATION = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,5})m)?(?:(\d{1,6}(?:\.\d{1,3})?)s?)?")


class Only(StrEnum):
    TOOLS = "tools"
    CONVERSATION = "conversation"
    ERRORS = "errors"


class Preset(StrEnum):
    WIDE = "wide"
    SQUARE = "square"
    PORTRAIT = "portrait"
    README = "readme"


_SIZES = {  # width, height and font size
    Preset.WIDE: (1920, 1080, 26),
    Preset.SQUARE: (1080, 1080, 22),
    Preset.PORTRAIT: (1080, 1920, 26),
    Preset.README: (1120, 640, 17),
}
_README = "30s"  # nobody looks longer at a picture above a text
_GIF = (1400, 800, 16)  # of a wide one, whose size in bytes matters

ThemeName = Annotated[
    str, typer.Option("--theme", metavar="NAME", help="Colours: mocha, latte, dracula, nord ...")
]
MaxOutput = Annotated[
    int,
    typer.Option("--max-output", min=0, max=500, metavar="N", help="Lines to show of each output."),
]


@dataclass
class FilmOptions:
    """What of a session is shown, and how fast."""

    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="Fit into this length: 60s, 2m, 1m30s."),
    ] = None
    speed: Annotated[
        float, typer.Option("--speed", min=0.1, max=20, metavar="N", help="Play N times as fast.")
    ] = 1.0
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="Start at this event (#1a2b3c4d, or its number) or time.",
        ),
    ] = None
    end: Annotated[
        str | None, typer.Option("--to", metavar="WHERE", help="End at this event or time.")
    ] = None
    prompts: Annotated[
        str | None,
        typer.Option("--prompts", metavar="N-M", help="Show only these prompts: 3, 3-7, 3- or -7."),
    ] = None
    only: Annotated[Only | None, typer.Option("--only", help="Show only these scenes.")] = None
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the film.")
    ] = None
    utc: Utc = False

    def __post_init__(self) -> None:
        if isnan(self.speed):  # is within any range
            raise SessError("invalid speed: nan", hint="use a number from 0.1 to 20")

    @property
    def milliseconds(self) -> int | None:
        return None if self.duration is None else _milliseconds(self.duration)

    def storyboard(self, story: Story, columns: int, max_output: int = MAX_OUTPUT) -> Storyboard:
        from sess_cli.export.film.storyboard import Extent, parse_prompts, storyboard

        return storyboard(
            story,
            columns,
            extent=Extent(self.begin, self.end, self.utc, parse_prompts(self.prompts))
            if self.begin or self.end or self.prompts
            else None,
            only_kind=self.only,
            max_output=max_output,
            title=self.title,
            utc=self.utc,
        )

    def film(self, story: Story, columns: int, lines: int, *, fps: int, max_output: int) -> Film:
        from sess_cli.export.film.pacing import USUAL_LONGEST, Pacing
        from sess_cli.export.film.stage import staged

        duration = self.milliseconds
        board = self.storyboard(story, columns, max_output)
        plan = Pacing(fps=fps, speed=self.speed, duration=duration).plan(board)
        if duration is None and plan.natural > USUAL_LONGEST:
            full, kept = amounts.duration(plan.natural), amounts.duration(USUAL_LONGEST)
            say(f"shortened from {full} to {kept}; --duration sets another length")
        return staged(board, plan, columns, lines, fps=fps)


@dataclass
class Shape:
    """The size of a picture, and of its letters."""

    preset: Annotated[
        Preset, typer.Option("--preset", help="Size and font for this shape; readme: 30s.")
    ] = Preset.WIDE
    width: Annotated[
        int | None, typer.Option("--width", min=64, max=7680, metavar="N", help="Width in pixels.")
    ] = None
    height: Annotated[
        int | None,
        typer.Option("--height", min=64, max=4320, metavar="N", help="Height in pixels."),
    ] = None
    font_size: Annotated[
        int | None,
        typer.Option("--font-size", min=6, max=200, metavar="N", help="Font size in pixels."),
    ] = None

    def sized(self, *, gif: bool = False) -> tuple[int, int, int]:
        """Width, height and font size."""
        usual = _GIF if gif and self.preset is Preset.WIDE else _SIZES[self.preset]
        return self.width or usual[0], self.height or usual[1], self.font_size or usual[2]


def _milliseconds(text: str) -> int:
    from sess_cli.export.film.pacing import LONGEST, SHORTEST

    parts = _DURATION.fullmatch(text.strip().lower())
    if not parts or not any(parts.groups()):
        raise SessError(f'invalid duration: "{text}"', hint="use 60s, 2m or 1m30s")
    hours, minutes, seconds = (float(part or 0) for part in parts.groups())
    length = round(1000 * (3600 * hours + 60 * minutes + seconds))
    if not SHORTEST <= length <= LONGEST:
        raise SessError(f"duration out of range: {text}", hint="use 5s to 4h")
    return length


class Backend(StrEnum):
    BUILTIN = "builtin"
    VHS = "vhs"


def _pictures(suffix: str, about: str) -> Callable[..., None]:
    """The command that writes files with this suffix."""

    def command(
        session: SessionId,
        *,
        output: Annotated[
            str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")
        ] = None,
        options: FilmOptions,
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
        writing: shared.Writing,
        no_sync: NoSync = False,
    ) -> None:
        picture = _Picture(suffix, theme, *shape.sized(gif=suffix == "gif"), fps, max_output)
        picture.check(backend, output)
        writing.check(output)
        if shape.preset is Preset.README and options.duration is None:
            options.duration = _README
        with shared.opened(session, writing.redactor, sync=not no_sync) as story:
            path = writing.target(output, shared.default_name(story, suffix))
            if captions:
                writing.check(_beside(path))
            if backend is Backend.VHS:
                picture.film_by_vhs(story, options, path)
            else:
                picture.film(story, options, path, captions=captions)
            shared.report(path, writing.redactor)
        if open_it:
            shared.open_file(path)

    command.__doc__ = about
    return command


video = _pictures("mp4", "Export a session as a video: MP4, or WebM if FILE ends in .webm.")
gif = _pictures("gif", "Export a session as an animated GIF.")


@dataclass
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
        from sess_cli.export.film import encode, tape, themes

        if output == "-":
            raise SessError("cannot write a film to stdout", hint="use `-o FILE`")
        if output:
            encode.check_name(output, gif=self.suffix == "gif")
        themes.theme(self.theme)
        if backend is Backend.VHS:
            tape.vhs_program()
        else:
            _need_extra()

    def film(self, story: Story, options: FilmOptions, path: str, *, captions: bool) -> None:
        from sess_cli.export.film import encode
        from sess_cli.export.film.fonts import grid
        from sess_schema import outputs

        columns, lines = grid(self.width, self.height, self.font_size)
        film = options.film(story, columns, lines, fps=self.fps, max_output=self.max_output)
        with shared.progress("filming") as progress:
            warnings = encode.write(
                film,
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
            with outputs.new_file(_beside(path), replace=True) as file:
                file.writelines(line.encode("utf-8", "replace") for line in encode.webvtt(film))

    def film_by_vhs(self, story: Story, options: FilmOptions, path: str) -> None:
        from sess_cli.export.film import tape
        from sess_schema import outputs

        name = f"film{os.path.splitext(path)[1].lower()}"
        lines = self.tape(story, options, name)
        with outputs.new_file(path, replace=True) as file:
            tape.record_tape(lines, name, file)

    def tape(self, story: Story, options: FilmOptions, output: str) -> Iterator[str]:
        """The lines of a tape that makes VHS write to this file."""
        from sess_cli.export.film import tape

        return tape.lines(
            options.storyboard(story, COLUMNS, self.max_output),
            output=output,
            ident=story.row.session,
            width=self.width,
            height=self.height,
            font_size=self.font_size,
            theme=tape.theme_name(self.theme),
            speed=options.speed,
            duration=options.milliseconds,
            utc=options.utc,
        )


def _beside(path: str) -> str:
    return f"{os.path.splitext(path)[0]}.vtt"


def _need_extra() -> None:
    from importlib.util import find_spec

    if find_spec("av") is None or find_spec("PIL") is None:
        raise SessError(
            "films need PyAV and Pillow",
            hint=f"`{installation.adding('video')}`; `sess export cast` and `tape` work without",
            code=Exit.PROGRAM_FAILED,
        )


def cast(
    session: SessionId,
    *,
    output: Output = None,
    options: FilmOptions,
    max_output: MaxOutput = MAX_OUTPUT,
    theme: ThemeName = THEME,
    columns: Annotated[
        int, typer.Option("--columns", min=20, max=500, help="Characters per line.")
    ] = COLUMNS,
    lines: Annotated[
        int, typer.Option("--lines", min=5, max=200, help="Lines on the screen.")
    ] = LINES,
    writing: shared.Writing,
    no_sync: NoSync = False,
) -> None:
    """Export a session as an asciinema recording."""
    from sess_cli.export.film import themes
    from sess_cli.export.film.cast import lines as cast_lines

    themes.theme(theme)
    writing.check(output)
    with shared.opened(session, writing.redactor, sync=not no_sync) as story:
        film = options.film(story, columns, lines, fps=FPS, max_output=max_output)
        recording = cast_lines(film, theme_name=theme, timestamp=story.row.started)
        path = writing.target(output, shared.default_name(story, "cast"))
        writing.put_lines(recording, path, json=True)


def tape(
    session: SessionId,
    *,
    output: Output = None,
    options: FilmOptions,
    theme: ThemeName = THEME,
    shape: Shape,
    writing: shared.Writing,
    no_sync: NoSync = False,
) -> None:
    """Export a session as a VHS tape; no shell runs any of it."""
    picture = _Picture("tape", theme, *shape.sized(), FPS, MAX_OUTPUT)
    writing.check(output)
    with shared.opened(session, writing.redactor, sync=not no_sync) as story:
        path = writing.target(output, shared.default_name(story, "tape"))
        named = shared.default_name(story, "tape") if path == "-" else os.path.basename(path)
        lines = picture.tape(story, options, f"{os.path.splitext(named)[0]}.mp4")
        writing.put_lines((f"{line}\n" for line in lines), path)
