"""Draws rows of cells in a panel with the theme's colours, one row at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sess_cli.export.film import fonts, order, themes
from sess_cli.export.film.frames import Look, Row
from sess_cli.export.film.glyphs import Glyphs, clusters
from sess_cli.export.film.rows import half_of
from sess_cli.render.layout import cells

if TYPE_CHECKING:
    from PIL import Image

_SMOOTH = 4  # corners are drawn this many times larger, then scaled down


class Painter:
    def __init__(self, place: fonts.Layout, theme: themes.Theme) -> None:
        self.place = place
        self.theme = theme
        self.glyphs = Glyphs(place)
        self._large: Painter | None = None
        self._base = theme.colour("base")
        self._blank = self._panel(place.cell_height, 0, 0)
        above = place.top
        below = place.height - place.top - place.lines * place.cell_height
        self.top = self._panel(above, above - place.margin, 0)
        self.bottom = self._panel(below, 0, below - place.margin)

    def row(self, row: Row) -> Image.Image:
        """One row across the whole width of the picture."""
        if half := half_of(row):
            return self._half(row, half)
        place, image = self.place, self._blank.copy()
        runs = _in_seen_order(row) if any(order.has_right_to_left(t) for t, _ in row) else row
        column = 0
        for number, (text, look) in enumerate(runs):
            after = runs[number + 1][0][:1] if number + 1 < len(runs) else " "
            column += self._run(image, column, text, look, after)
            if column >= place.columns:
                break
        return image

    def _half(self, row: Row, half: int) -> Image.Image:
        """The upper or lower half of a row of letters twice as large."""
        if self._large is None:
            self._large = Painter(self.place.enlarged(), self.theme)
        drawn = self._large.row(tuple((text, replace(look, half=0)) for text, look in row))
        top = (half - 1) * self.place.cell_height
        return drawn.crop((0, top, drawn.width, top + self.place.cell_height))

    @property
    def missing(self) -> set[str]:
        """Characters that no font had."""
        return self.glyphs.missing | (self._large.missing if self._large else set())

    def picture(self, rows: Sequence[Row]) -> Image.Image:
        from PIL import Image

        place = self.place
        image = Image.new("RGB", (place.width, place.height))
        image.paste(self.top, (0, 0))
        for line in range(place.lines):
            strip = self.row(rows[line]) if line < len(rows) else self._blank
            image.paste(strip, (0, place.top + line * place.cell_height))
        image.paste(self.bottom, (0, place.height - self.bottom.height))
        return image

    def _run(self, image: Image.Image, column: int, text: str, look: Look, after: str) -> int:
        """Draw a run and return its number of cells; `after` is the text that follows it."""
        place = self.place
        front, behind = self.theme.of(look)
        width = min(cells(text), place.columns - column)
        left = place.left + column * place.cell_width
        right = left + width * place.cell_width
        if behind != self._base:
            image.paste(behind, (left, 0, right, place.cell_height))
        pieces = text if text.isascii() else list(clusters(text))
        x = left
        for number, piece in enumerate(pieces, 1):
            taken = 1 if piece.isascii() else cells(piece)
            if x + taken * place.cell_width > right:
                break
            if piece != " ":
                following = pieces[number] if number < len(pieces) else after
                loose = following == " " and taken == 1 and not piece.isascii()
                self._letter(image, x, piece, look, front, loose=loose)
            x += taken * place.cell_width
        for level, wanted in ((0.86, look.underline), (0.54, look.strike)):
            if wanted:
                y = round(place.cell_height * level)
                image.paste(front, (left, y, right, y + max(1, place.cell_width // 9)))
        return width

    def _letter(
        self, image: Image.Image, x: int, piece: str, look: Look, front: themes.RGB, *, loose: bool
    ) -> None:
        glyph = self.glyphs.glyph(piece, bold=look.bold, italic=look.italic, loose=loose)
        if glyph is None:
            return
        if glyph.image.mode == "RGBA":
            image.paste(glyph.image, (x, 0), glyph.image)
            return
        if glyph.tint and look.fg == "text":
            front = self.theme.colour(glyph.tint)
        image.paste(front, (x, 0), glyph.image)

    def _panel(self, height: int, rounded_from: int, rounded_to: int) -> Image.Image:
        """A slice of the panel: its upper edge, its lower edge, or neither."""
        from PIL import Image, ImageDraw

        place = self.place
        shape = Image.new("L", (place.width * _SMOOTH, height * _SMOOTH))
        far = place.height
        begin = height - rounded_from if rounded_from else -far
        end = rounded_to or height + far
        box = (place.margin, begin, place.width - place.margin, end)
        radius = min(place.margin, rounded_from or rounded_to or place.margin) * _SMOOTH
        left, upper, right, lower = (edge * _SMOOTH for edge in box)
        ImageDraw.Draw(shape).rounded_rectangle((left, upper, right - 1, lower - 1), radius, 255)
        image = Image.new("RGB", (place.width, height), self.theme.colour("crust"))
        image.paste(self._base, (0, 0), shape.reduce(_SMOOTH))
        return image


def _in_seen_order(row: Row) -> Row:
    return tuple(order.seen([(piece, look) for text, look in row for piece in clusters(text)]))
