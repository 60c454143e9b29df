"""Options of films: what of a session is shown, how fast and in which shape."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import Utc

if TYPE_CHECKING:
    from sess_cli.export.film.frames import Film
    from sess_cli.export.film.scenes import Storyboard
    from sess_cli.export.story import Story

FPS, THEME = 15, "mocha"
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

ThemeName = Annotated[
    str, typer.Option("--theme", metavar="NAME", help="Colours: mocha, latte, dracula, nord ...")
]
MaxOutput = Annotated[
    int,
    typer.Option("--max-output", min=0, max=500, metavar="N", help="Lines to show of each output."),
]


@dataclass(slots=True)
class Asked:
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
        from sess_common.errors import SessError

        if isnan(self.speed):  # is within any range
            raise SessError("invalid speed: nan", hint="use a number from 0.1 to 20")

    @property
    def milliseconds(self) -> int | None:
        return None if self.duration is None else _milliseconds(self.duration)

    def storyboard(self, story: Story, columns: int, max_output: int = MAX_OUTPUT) -> Storyboard:
        from sess_cli.export.film.extent import Extent, prompts
        from sess_cli.export.film.storyboard import storyboard

        return storyboard(
            story,
            columns,
            extent=Extent(self.begin, self.end, self.utc, prompts(self.prompts))
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
        from sess_cli.render import amounts
        from sess_common.program import say

        duration = self.milliseconds
        board = self.storyboard(story, columns, max_output)
        plan = Pacing(fps=fps, speed=self.speed, duration=duration).plan(board)
        if duration is None and plan.natural > USUAL_LONGEST:
            full, kept = amounts.duration(plan.natural), amounts.duration(USUAL_LONGEST)
            say(f"shortened from {full} to {kept}; --duration sets another length")
        return staged(board, plan, columns, lines, fps=fps)


@dataclass(slots=True)
class Shape:
    """The size of a picture, and of its letters."""

    preset: Annotated[Preset, typer.Option("--preset", help="Size and font for this shape.")] = (
        Preset.WIDE
    )
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
    from sess_common.errors import SessError

    found = _SECONDS.fullmatch(text.strip().lower())
    if not found or not any(found.groups()):
        raise SessError(f'invalid duration: "{text}"', hint="use 60s, 2m or 1m30s")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    length = round(1000 * (3600 * hours + 60 * minutes + seconds))
    if not SHORTEST <= length <= LONGEST:
        raise SessError(f"duration out of range: {text}", hint="use 5s to 4h")
    return length
