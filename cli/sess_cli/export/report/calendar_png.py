"""`sess stats --png`: the calendar as an image to share. Projects appear only if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

from sess_cli.export.report.charts import flat
from sess_cli.render import amounts, layout, tallies
from sess_cli.render.stats import calendar
from sess_common import installation
from sess_common.errors import Exit, SessError
from sess_schema import outputs
from sess_schema.queries.views.overview import busy, read_calendar, streaks

if TYPE_CHECKING:
    import apsw
    from PIL import Image, ImageDraw, ImageFont

    from sess_schema.queries.stats import Stats, Tally

_SCALE = 2  # for high-density screens
_WIDTH = 1200
_MARGIN = 56
_CELL = 19
_SQUARE = 15
_LEFT = _MARGIN + 48  # where weeks begin, right of the weekday names
_LONG = 50  # weeks from which a sheet fills the width
_SHEET = 7 * _CELL + 26
_MONTH = 28  # the width of its name


class Colours(NamedTuple):
    background: str
    line: str
    text: str
    dim: str
    shades: tuple[str, ...]  # of a day, from nothing to the most


COLOURS = {
    "dark": Colours(
        "#15171a", "#30343a", "#e4e6e9", "#9aa1ab",
        ("#26292e", "#173a57", "#1f5f92", "#4597d6", "#a9d8ff"),
    ),
    "light": Colours(
        "#ffffff", "#dedbd5", "#24221f", "#625e58",
        ("#eceae5", "#c3dcf0", "#82b4dc", "#3a82bd", "#0b4a80"),
    ),
}  # fmt: skip


def write(
    db: apsw.Connection,
    asked: Stats,
    path: str,
    theme: str = "dark",
    *,
    replace: bool = False,
) -> None:
    """Write the image, readable only by its owner."""
    try:
        import PIL  # noqa: F401 - fail before counting
    except ImportError as error:
        raise SessError(
            "--png needs Pillow, which is not installed",
            hint=f"`{installation.adding('video')}`",
            code=Exit.PROGRAM_FAILED,
        ) from error
    days = read_calendar(db, asked).days
    picture = _Picture(asked, asked.total(db), days, COLOURS[theme]).drawn()
    with outputs.new_file(path, replace=replace) as file:
        picture.save(file, "PNG", optimize=True)


class _Picture:
    def __init__(
        self, asked: Stats, total: Tally, days: dict[date, Tally], colours: Colours
    ) -> None:
        self._colours = colours
        self._asked = asked
        self._total = total
        self._values = {day: busy(tally) for day, tally in days.items()}
        self._today = datetime.now(asked.zone).date()
        self._sheets = calendar.sheets(self._values, self._today)
        self._marks = calendar.shade_limits(list(self._values.values()))

    def drawn(self) -> Image.Image:
        from PIL import Image, ImageDraw

        body = 150 + max(1, len(self._sheets)) * (_SHEET + 14)
        height = body + 134
        picture = Image.new("RGB", (_WIDTH * _SCALE, height * _SCALE), self._colours.background)
        draw = ImageDraw.Draw(picture)
        self._say(draw, (_MARGIN, 44), "Coding agents", 34, bold=True)
        self._say(draw, (_MARGIN, 92), self._subtitle(), 18, dim=True)
        if not self._sheets:
            self._say(draw, (_MARGIN, 190), "No activity in this period.", 20, dim=True)
        squares = _squares(self._colours)
        for number, sheet in enumerate(self._sheets):
            self._sheet(picture, draw, squares, sheet, 150 + number * (_SHEET + 14))
        self._legend(picture, draw, squares)
        self._facts(draw, body + 26)
        return picture

    def _subtitle(self) -> str:
        asked = self._asked
        shown = [*asked.agents, *asked.models, *asked.branches]
        shown += [layout.home_short(project) for project in asked.projects]
        if asked.subagents != "include":
            shown.append(f"subagents: {asked.subagents}")
        when = f"{min(self._values)} to {max(self._values)}" if self._values else ""
        return layout.cut(" · ".join(filter(None, (when, *map(flat, shown)))), 90)

    def _sheet(
        self,
        picture: Image.Image,
        draw: ImageDraw.ImageDraw,
        squares: Sequence[Image.Image],
        sheet: calendar.Sheet,
        top: int,
    ) -> None:
        week = _week(sheet.weeks)
        if sheet.name:
            self._say(draw, (_MARGIN, top), sheet.name, 15, bold=True)
        for column, month in sheet.months():
            x, right = _LEFT + column * week, _WIDTH - _MARGIN
            if x + _MONTH > right:
                self._say(draw, (right, top), month, 15, dim=True, anchor="ra")
            else:
                self._say(draw, (x, top), month, 15, dim=True)
        for row in (0, 2, 4):
            place = (_MARGIN, top + 25 + row * _CELL)
            self._say(draw, place, calendar.WEEKDAYS[row], 14, dim=True)
        for day in sheet.days():
            square = squares[calendar.shade(self._values.get(day, 0), self._marks)]
            x = _LEFT + sheet.column(day) * week
            y = top + 26 + day.weekday() * _CELL
            picture.paste(square, (round(x * _SCALE), y * _SCALE))

    def _legend(
        self, picture: Image.Image, draw: ImageDraw.ImageDraw, squares: Sequence[Image.Image]
    ) -> None:
        right = _WIDTH - _MARGIN
        self._say(draw, (right, 56), "more", 15, dim=True, anchor="ra")
        x = right - 44 - len(squares) * _CELL
        for number, square in enumerate(squares):
            picture.paste(square, ((x + number * _CELL) * _SCALE, 57 * _SCALE))
        self._say(draw, (x - 8, 56), "less", 15, dim=True, anchor="ra")
        self._say(draw, (right, 84), "prompts and responses per day", 14, dim=True, anchor="ra")

    def _facts(self, draw: ImageDraw.ImageDraw, top: int) -> None:
        current, longest = streaks(self._values, self._today)
        facts = [
            (tallies.short(len(self._total.sessions)), "sessions"),
            (tallies.short(self._total.prompts), "prompts"),
            (tallies.short(self._total.tokens), "tokens"),
            (f"{len(self._values):,}", "active days"),
            *((amounts.plural(longest, "day"), "longest streak") for _ in range(longest > 0)),
            *((amounts.plural(current, "day"), "current streak") for _ in range(current > 0)),
        ]
        line = (top - 20) * _SCALE
        draw.line(
            (_MARGIN * _SCALE, line, (_WIDTH - _MARGIN) * _SCALE, line),
            fill=self._colours.line,
            width=_SCALE,
        )
        room = (_WIDTH - 2 * _MARGIN) / len(facts)
        for number, (value, name) in enumerate(facts):
            x = round(_MARGIN + number * room)
            self._say(draw, (x, top), value, 26, bold=True)
            self._say(draw, (x, top + 36), name, 15, dim=True)

    def _say(
        self,
        draw: ImageDraw.ImageDraw,
        place: tuple[float, int],
        words: str,
        size: int,
        *,
        dim: bool = False,
        bold: bool = False,
        anchor: str = "la",
    ) -> None:
        at = (round(place[0] * _SCALE), place[1] * _SCALE)
        colour = self._colours.dim if dim else self._colours.text
        draw.text(at, words, fill=colour, font=_font(size * _SCALE, bold=bold), anchor=anchor)


def _font(size: int, *, bold: bool) -> ImageFont.FreeTypeFont:
    from PIL import ImageFont

    from sess_cli.export.film import fonts

    return ImageFont.truetype(str(fonts.mono(bold=bold, italic=False).path), size)


def _week(weeks: int) -> float:
    """From one week to the next: what nearly fills the width ends at the margin."""
    if weeks < _LONG:
        return _CELL
    return (_WIDTH - _MARGIN - _LEFT - _SQUARE) / (weeks - 1)


def _squares(colours: Colours) -> list[Image.Image]:
    """One for each shade, with round corners: drawn large, then scaled down."""
    from PIL import Image, ImageDraw

    large = 4 * _SQUARE * _SCALE
    squares = []
    for shade in colours.shades:
        square = Image.new("RGB", (large, large), colours.background)
        ImageDraw.Draw(square).rounded_rectangle((0, 0, large - 1, large - 1), large // 5, shade)
        squares.append(square.resize((_SQUARE * _SCALE,) * 2, Image.Resampling.LANCZOS))
    return squares
