"""GIF, written while drawing: one palette for the whole film, and only changed rows."""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, BinaryIO

from sess_cli.export.film.frames import Film, Look, Row
from sess_cli.export.film.picture import Painter
from sess_cli.export.film.themes import RGB, Theme, mixed

if TYPE_CHECKING:
    from PIL import Image

_MOST = 256  # colours
_STEPS = 6  # blends from background to text, for smooth edges
_KEPT = 1500  # rows
_LONGEST = 65_535  # hundredths of a second


def colours(film: Film, theme: Theme) -> list[RGB]:
    """The palette of the film: plain colours first, then the edges of letters."""
    seen: set[Row] = set()
    looks: Counter[Look] = Counter()
    before: tuple[Row, ...] = ()
    for frame in film.frames():
        for line, row in enumerate(frame.rows):
            if (line < len(before) and row is before[line]) or row in seen:
                continue
            seen.add(row)
            for text, look in row:
                looks[look] += len(text)
        before = frame.rows
    pairs = [theme.of(look) for look, _ in looks.most_common()]
    found = dict.fromkeys([theme.colour("base"), theme.colour("crust"), *sum(pairs, ())])
    for step in range(1, _STEPS):
        # If there are too many looks, rare ones get no edge colours.
        for front, behind in pairs:
            found[mixed(behind, front, step / _STEPS)] = None
    return list(found)[:_MOST]


class Writer:
    def __init__(self, file: BinaryIO, painter: Painter, palette: Iterable[RGB]) -> None:
        from PIL import Image

        place = painter.place
        self._file = file
        self._painter = painter
        self._palette = Image.new("P", (1, 1))
        flat = [level for colour in palette for level in colour]
        self._palette.putpalette(flat + flat[:3] * (_MOST - len(flat) // 3))
        self._canvas = Image.new("P", (place.width, place.height))
        self._canvas.paste(self._indexed(painter.top), (0, 0))
        self._canvas.paste(self._indexed(painter.bottom), (0, place.height - painter.bottom.height))
        self._rows: list[Row | None] = [None] * place.lines
        self._strips: OrderedDict[Row, Image.Image] = OrderedDict()
        self._pending: tuple[int, bytes] | None = None  # start time, picture
        table = bytes(self._palette.getpalette() or ()).ljust(3 * _MOST, b"\0")
        file.write(b"GIF89a" + struct.pack("<HHBBB", place.width, place.height, 0xF7, 0, 0) + table)
        file.write(b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0")  # loop forever

    def show(self, rows: Sequence[Row], at: int) -> None:
        """Show the picture from `at` milliseconds on."""
        place = self._painter.place
        changed = []
        for line in range(place.lines):
            row = rows[line] if line < len(rows) else ()
            if row != self._rows[line]:
                self._canvas.paste(self._strip(row), (0, place.top + line * place.cell_height))
                self._rows[line] = row
                changed.append(line)
        if self._pending is None:
            box = (0, 0, place.width, place.height)
        elif changed:
            upper, lower = (
                place.top + n * place.cell_height for n in (changed[0], changed[-1] + 1)
            )
            box = (0, upper, place.width, lower)
        else:
            return
        self._flush(at)
        self._pending = at, self._picture(box)

    def close(self, end: int) -> None:
        self._flush(end)
        self._file.write(b";")

    def _flush(self, until: int) -> None:
        if self._pending is None:
            return
        begin, picture = self._pending
        # Each end is rounded, not each length, so that errors do not add up.
        delay = min(_LONGEST, max(2, round(until / 10) - round(begin / 10)))
        self._file.write(b"!\xf9\x04" + struct.pack("<BHBB", 4, delay, 0, 0) + picture)

    def _picture(self, box: tuple[int, int, int, int]) -> bytes:
        left, upper, right, lower = box
        head = struct.pack("<BHHHHBB", 0x2C, left, upper, right - left, lower - upper, 0, 8)
        return head + self._canvas.crop(box).tobytes("gif", "P") + b"\0"

    def _strip(self, row: Row) -> Image.Image:
        strip = self._strips.get(row)
        if strip is None:
            strip = self._strips[row] = self._indexed(self._painter.row(row))
            if len(self._strips) > _KEPT:
                self._strips.popitem(last=False)
        else:
            self._strips.move_to_end(row)
        return strip

    def _indexed(self, image: Image.Image) -> Image.Image:
        from PIL import Image

        return image.quantize(palette=self._palette, dither=Image.Dither.NONE)
