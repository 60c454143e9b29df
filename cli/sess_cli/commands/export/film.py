"""`sess export video`, `gif`, `cast` and `tape`: one session as a film."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli import options
from sess_cli.commands.export import shared

if TYPE_CHECKING:
    from sess_cli.export.film.frames import Film
    from sess_cli.export.film.scenes import Storyboard
    from sess_cli.export.story import Story
    from sess_schema.redaction import Redactor

FPS, THEME = 15, "mocha"
COLUMNS, LINES = 136, 36  # about what a picture of that size has
TAPE_COLUMNS = 136
MAX_OUTPUT = 12
_SECONDS = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,5})m)?(?:(\d{1,6}(?:\.\d{1,3})?)s?)?")


class Only(StrEnum):
    TOOLS = "tools"
    CONVERSATION = "conversation"
    ERRORS = "errors"


class Preset(StrEnum):
    WIDE = "wide"
    SQUARE = "square"
    PORTRAIT = "portrait"


_SIZES = {  # width, height and font size
    Preset.WIDE: (1920, 1080, 26),
    Preset.SQUARE: (1080, 1080, 22),
    Preset.PORTRAIT: (1080, 1920, 26),
}
_GIF = (1400, 800, 16)  # of a wide one, whose size in bytes matters


class Backend(StrEnum):
    BUILTIN = "builtin"
    VHS = "vhs"


Picture = Annotated[
    str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")
]
Duration = Annotated[
    str | None,
    typer.Option("--duration", metavar="TIME", help="Fit into this length: 60s, 2m, 1m30s."),
]
Speed = Annotated[
    float, typer.Option("--speed", min=0.1, max=20, metavar="N", help="Play N times as fast.")
]
Begin = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="WHERE", help="Start at this event (#1a2b3c4d, or its number) or time."
    ),
]
End = Annotated[
    str | None, typer.Option("--to", metavar="WHERE", help="End at this event or time.")
]
Prompts = Annotated[
    str | None,
    typer.Option("--prompts", metavar="N-M", help="Show only these prompts: 3, 3-7, 3- or -7."),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the film.")]
Captions = Annotated[
    bool, typer.Option("--captions", help="Also write what is said as WebVTT, beside the film.")
]
Shape = Annotated[Preset, typer.Option("--preset", help="Size and font for this shape.")]
OnlyKind = Annotated[Only | None, typer.Option("--only", help="Show only these scenes.")]
MaxOutput = Annotated[
    int,
    typer.Option("--max-output", min=0, max=500, metavar="N", help="Lines to show of each output."),
]
ThemeName = Annotated[
    str, typer.Option("--theme", metavar="NAME", help="Colours: mocha, latte, dracula, nord ...")
]
Width = Annotated[
    int | None, typer.Option("--width", min=64, max=7680, metavar="N", help="Width in pixels.")
]
Height = Annotated[
    int | None, typer.Option("--height", min=64, max=4320, metavar="N", help="Height in pixels.")
]
FontSize = Annotated[
    int | None,
    typer.Option("--font-size", min=6, max=200, metavar="N", help="Font size in pixels."),
]
Columns = Annotated[int, typer.Option("--columns", min=20, max=500, help="Characters per line.")]
Lines = Annotated[int, typer.Option("--lines", min=5, max=200, help="Lines on the screen.")]
Fps = Annotated[int, typer.Option("--fps", min=2, max=60, help="Frames per second.")]
With = Annotated[Backend, typer.Option("--backend", help="What draws the film.")]


def register(group: typer.Typer) -> None:
    about = "Export a session as a video: MP4, or WebM if FILE ends in .webm."
    group.command("video")(_pictures("mp4", about))
    group.command("gif")(_pictures("gif", "Export a session as an animated GIF."))
    group.command("cast")(cast)
    group.command("tape")(tape)


@dataclass(slots=True)
class _Asked:
    """What of a session is shown, and how fast."""

    duration: str | None
    speed: float
    begin: str | None
    end: str | None
    only: Only | None
    max_output: int
    utc: bool
    prompts: str | None
    title: str | None

    def __post_init__(self) -> None:
        from sess_schema.errors import SessError  # noqa: PLC0415

        if isnan(self.speed):  # is within any range
            raise SessError("invalid speed: nan", hint="use a number from 0.1 to 20")

    @property
    def milliseconds(self) -> int | None:
        return None if self.duration is None else _milliseconds(self.duration)

    def storyboard(self, story: Story, columns: int) -> Storyboard:
        from sess_cli.export.film.extent import Extent, prompts  # noqa: PLC0415
        from sess_cli.export.film.storyboard import storyboard  # noqa: PLC0415

        return storyboard(
            story,
            columns,
            extent=Extent(self.begin, self.end, self.utc, prompts(self.prompts))
            if self.begin or self.end or self.prompts
            else None,
            only_kind=self.only,
            max_output=self.max_output,
            title=self.title,
            utc=self.utc,
        )

    def film(self, story: Story, columns: int, lines: int, fps: int) -> Film:
        from sess_cli.export.film.pacing import USUAL_LONGEST, Pacing  # noqa: PLC0415
        from sess_cli.export.film.stage import staged  # noqa: PLC0415
        from sess_cli.render import amounts  # noqa: PLC0415
        from sess_schema.program import say  # noqa: PLC0415

        duration = self.milliseconds
        board = self.storyboard(story, columns)
        plan = Pacing(fps=fps, speed=self.speed, duration=duration).plan(board)
        if duration is None and plan.natural > USUAL_LONGEST:
            full, kept = amounts.duration(plan.natural), amounts.duration(USUAL_LONGEST)
            say(f"shortened from {full} to {kept}; --duration sets another length")
        return staged(board, plan, columns, lines, fps=fps)


def _pictures(suffix: str, about: str) -> Callable[..., None]:
    """The command that writes files with this suffix."""

    def command(
        session: options.SessionId,
        *,
        output: Picture = None,
        duration: Duration = None,
        speed: Speed = 1.0,
        begin: Begin = None,
        end: End = None,
        prompts: Prompts = None,
        only: OnlyKind = None,
        max_output: MaxOutput = MAX_OUTPUT,
        title: Title = None,
        captions: Captions = False,
        theme: ThemeName = THEME,
        preset: Shape = Preset.WIDE,
        width: Width = None,
        height: Height = None,
        font_size: FontSize = None,
        fps: Fps = FPS,
        backend: With = Backend.BUILTIN,
        open_it: shared.Open = False,
        no_redact: shared.NoRedact = False,
        redact: shared.Redact = None,
        redaction_report: shared.RedactionReport = False,
        force: shared.Force = False,
        utc: options.Utc = False,
        no_sync: options.NoSync = False,
    ) -> None:
        size = _sized(suffix, preset, width, height, font_size)
        picture = _Picture(suffix, theme, *size, fps)
        picture.check(backend, output)
        asked = _Asked(duration, speed, begin, end, only, max_output, utc, prompts, title)
        shared.check_output(output, force=force)
        redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
        with shared.opened(session, redactor, sync=not no_sync) as story:
            path = output or shared.default_name(story, suffix)
            if backend is Backend.VHS:
                picture.film_by_vhs(story, asked, path)
            else:
                picture.film(story, asked, path, captions=captions)
            shared.report(path, redactor)
        if open_it:
            shared.open_file(path)

    command.__doc__ = about
    return command


def _sized(
    suffix: str, preset: Preset, width: int | None, height: int | None, font_size: int | None
) -> tuple[int, int, int]:
    usual = _GIF if suffix == "gif" and preset is Preset.WIDE else _SIZES[preset]
    return width or usual[0], height or usual[1], font_size or usual[2]


@dataclass(slots=True)
class _Picture:
    """How a film is drawn."""

    suffix: str
    theme: str
    width: int
    height: int
    font_size: int
    fps: int

    def check(self, backend: Backend, output: str | None) -> None:
        """Fail before anything is read."""
        from sess_cli.export.film import encode, themes, vhs  # noqa: PLC0415
        from sess_schema.errors import SessError  # noqa: PLC0415

        if output == "-":
            raise SessError("cannot write a film to stdout", hint="use `-o FILE`")
        if output:
            encode.check_name(output, gif=self.suffix == "gif")
        themes.theme(self.theme)
        if backend is Backend.VHS:
            vhs.program()
        else:
            _need_extra()

    def film(self, story: Story, asked: _Asked, path: str, *, captions: bool) -> None:
        from sess_cli.export import files  # noqa: PLC0415
        from sess_cli.export.film import captions as said  # noqa: PLC0415
        from sess_cli.export.film import encode  # noqa: PLC0415
        from sess_cli.export.film.fonts import grid  # noqa: PLC0415
        from sess_schema.program import say  # noqa: PLC0415

        columns, lines = grid(self.width, self.height, self.font_size)
        made = asked.film(story, columns, lines, self.fps)
        write = encode.write_gif if self.suffix == "gif" else encode.write_video
        with _progress() as progress:
            warnings = write(
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
            with files.new_file(f"{os.path.splitext(path)[0]}.vtt") as file:
                file.writelines(line.encode("utf-8", "replace") for line in said.lines(made))

    def film_by_vhs(self, story: Story, asked: _Asked, path: str) -> None:
        from sess_cli.export import files  # noqa: PLC0415
        from sess_cli.export.film import tape, vhs  # noqa: PLC0415

        name = f"film{os.path.splitext(path)[1].lower()}"
        lines = tape.lines(
            asked.storyboard(story, TAPE_COLUMNS),
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


def cast(
    session: options.SessionId,
    *,
    output: shared.Output = None,
    duration: Duration = None,
    speed: Speed = 1.0,
    begin: Begin = None,
    end: End = None,
    prompts: Prompts = None,
    only: OnlyKind = None,
    max_output: MaxOutput = MAX_OUTPUT,
    title: Title = None,
    theme: ThemeName = THEME,
    columns: Columns = COLUMNS,
    lines: Lines = LINES,
    no_redact: shared.NoRedact = False,
    redact: shared.Redact = None,
    redaction_report: shared.RedactionReport = False,
    force: shared.Force = False,
    utc: options.Utc = False,
    no_sync: options.NoSync = False,
) -> None:
    """Export a session as an asciinema recording."""
    from sess_cli.export.film import themes  # noqa: PLC0415
    from sess_cli.export.film.cast import lines as cast_lines  # noqa: PLC0415

    themes.theme(theme)
    asked = _Asked(duration, speed, begin, end, only, max_output, utc, prompts, title)
    shared.check_output(output, force=force)
    redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
    with shared.opened(session, redactor, sync=not no_sync) as story:
        film = asked.film(story, columns, lines, FPS)
        made = cast_lines(film, theme_name=theme, timestamp=story.row.started)
        _write_text(made, output or shared.default_name(story, "cast"), redactor, json=True)


def tape(
    session: options.SessionId,
    *,
    output: shared.Output = None,
    duration: Duration = None,
    speed: Speed = 1.0,
    begin: Begin = None,
    end: End = None,
    prompts: Prompts = None,
    only: OnlyKind = None,
    title: Title = None,
    theme: ThemeName = THEME,
    preset: Shape = Preset.WIDE,
    width: Width = None,
    height: Height = None,
    font_size: FontSize = None,
    no_redact: shared.NoRedact = False,
    redact: shared.Redact = None,
    redaction_report: shared.RedactionReport = False,
    force: shared.Force = False,
    utc: options.Utc = False,
    no_sync: options.NoSync = False,
) -> None:
    """Export a session as a VHS tape; no shell runs any of it."""
    from sess_cli.export.film import tape as tapes  # noqa: PLC0415

    asked = _Asked(duration, speed, begin, end, only, MAX_OUTPUT, utc, prompts, title)
    size = _sized("mp4", preset, width, height, font_size)
    shared.check_output(output, force=force)
    redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
    with shared.opened(session, redactor, sync=not no_sync) as story:
        path = output or shared.default_name(story, "tape")
        named = shared.default_name(story, "tape") if path == "-" else os.path.basename(path)
        made = tapes.lines(
            asked.storyboard(story, TAPE_COLUMNS),
            output=f"{os.path.splitext(named)[0]}.mp4",
            ident=story.row.session,
            **dict(zip(("width", "height", "font_size"), size, strict=True)),
            theme=tapes.theme_name(theme),
            speed=speed,
            duration=asked.milliseconds,
            utc=utc,
        )
        _write_text((f"{line}\n" for line in made), path, redactor)


def _write_text(
    lines: Iterable[str], path: str, redactor: Redactor | None, *, json: bool = False
) -> None:
    from sess_cli.export import files  # noqa: PLC0415

    if path == "-":
        out = shared.standard_output(json=json)
        for line in lines:
            out.write(line.encode("utf-8", "replace"))
        shared.report_masked(redactor)
        return
    with files.new_file(path) as file:
        for line in lines:
            file.write(line.encode("utf-8", "replace"))
    shared.report(path, redactor)


def _need_extra() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    from sess_schema.errors import Exit, SessError  # noqa: PLC0415

    if find_spec("av") is None or find_spec("PIL") is None:
        raise SessError(
            "films need PyAV and Pillow",
            hint="`pip install 'sessiond[video]'`; `sess export cast` and `tape` work without",
            code=Exit.PROGRAM_FAILED,
        )


def _milliseconds(text: str) -> int:
    from sess_cli.export.film.pacing import LONGEST, SHORTEST  # noqa: PLC0415
    from sess_schema.errors import SessError  # noqa: PLC0415

    found = _SECONDS.fullmatch(text.strip().lower())
    if not found or not any(found.groups()):
        raise SessError(f'invalid duration: "{text}"', hint="use 60s, 2m or 1m30s")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    length = round(1000 * (3600 * hours + 60 * minutes + seconds))
    if not SHORTEST <= length <= LONGEST:
        raise SessError(f"duration out of range: {text}", hint="use 5s to 4h")
    return length


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar; None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

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
