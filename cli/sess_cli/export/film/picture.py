"""Draws rows of cells in a panel with the theme's colours, one row at a time."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from PIL import Image, ImageDraw

from sess_cli.export.film import fonts, themes
from sess_cli.export.film.glyphs import Glyphs, clusters, taken_by
from sess_cli.export.film.rows import Look, Row, half_of
from sess_cli.render.layout import cells

_SMOOTH = 4  # corners are drawn this many times larger, then scaled down
T = TypeVar("T")
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_RIGHT_TO_LEFT = ("R", "AL")
_NUMBERS = ("EN", "AN", "L")
_LIGATURES = {"لآ": "\ufef5", "لأ": "\ufef7", "لإ": "\ufef9", "لا": "\ufefb"}


class Painter:
    """Draws rows as strips of a picture, and the edges above and below them."""

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
        runs: Sequence[tuple[str, Look]] = row
        if any(has_right_to_left(text) for text, _ in row):
            parts = [(part, look) for text, look in row for part in clusters(text)]
            runs = in_visual_order(parts)
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
            taken = 1 if piece.isascii() else taken_by(piece)
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
        return (x - left) // place.cell_width

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


# -- right-to-left text in visual order, with Arabic letters joined


def has_right_to_left(text: str) -> bool:
    """Hebrew is the first right-to-left script in Unicode."""
    return not text.isascii() and any(
        character >= "\u0590" and unicodedata.bidirectional(character) in _RIGHT_TO_LEFT
        for character in text
    )


def in_visual_order(pieces: Sequence[tuple[str, T]]) -> list[tuple[str, T]]:
    """Clusters in visual order, given in reading order, for a left-to-right row.

    Simpler than Unicode's algorithm: runs from one right-to-left letter to the last are
    reversed, except numbers and words of other scripts inside them.
    """
    joined = _joined_letters(pieces)
    kinds = [unicodedata.bidirectional(text[0]) for text, _ in joined]
    result: list[tuple[str, T]] = []
    at = 0
    while at < len(joined):
        if kinds[at] not in _RIGHT_TO_LEFT:
            result.append(joined[at])
            at += 1
            continue
        end = _end_of_run(kinds, at)
        result += _reversed_run(joined[at:end], kinds[at:end])
        at = end
    return result


def _end_of_run(kinds: list[str], start: int) -> int:
    end = at = start
    while at < len(kinds) and kinds[at] != "L":
        at += 1
        if kinds[at - 1] in _RIGHT_TO_LEFT:
            end = at
    return end


def _reversed_run(pieces: list[tuple[str, T]], kinds: list[str]) -> list[tuple[str, T]]:
    result: list[tuple[str, T]] = []
    at = len(pieces)
    while at:
        start = at - 1
        if kinds[start] in _NUMBERS:
            while start and (kinds[start - 1] in _NUMBERS or kinds[start - 1] in ("CS", "ES")):
                start -= 1
            result += pieces[start:at]
        else:
            text, rest = pieces[start]
            result.append((text.translate(_MIRRORED), rest))
        at = start
    return result


@functools.cache
def _letter_forms() -> dict[str, dict[str, str]]:
    """The shapes of each Arabic letter: `isolated`, `initial`, `medial`, `final`."""
    forms: dict[str, dict[str, str]] = {}
    for code in (*range(0xFB50, 0xFC00), *range(0xFE80, 0xFEFD)):
        shape, *letters = unicodedata.decomposition(chr(code)).split() or [""]
        if len(letters) == 1:
            forms.setdefault(chr(int(letters[0], 16)), {})[shape.strip("<>")] = chr(code)
    for isolated in _LIGATURES.values():
        forms[isolated] = {"final": chr(ord(isolated) + 1)}
    return forms


def _with_ligatures(pieces: Sequence[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    at = 0
    while at < len(pieces):
        text, rest = pieces[at]
        ligature = _LIGATURES.get("".join(piece for piece, _ in pieces[at : at + 2])[:2])
        at += 1
        if ligature is not None and text == "ل":
            text, at = ligature + pieces[at][0][1:], at + 1
        yield text, rest


def _joined_letters(pieces: Sequence[tuple[str, T]]) -> list[tuple[str, T]]:
    forms = _letter_forms()
    pieces = [*_with_ligatures(pieces)]
    shapes = [forms.get(text[0], {}) for text, _ in pieces]
    result = []
    for at, (text, rest) in enumerate(pieces):
        before = at > 0 and "initial" in shapes[at - 1] and "final" in shapes[at]
        after = at + 1 < len(pieces) and "initial" in shapes[at] and "final" in shapes[at + 1]
        shape = {(1, 1): "medial", (1, 0): "final", (0, 1): "initial"}.get((before, after), "")
        result.append((shapes[at].get(shape, text[0]) + text[1:], rest))
    return result
