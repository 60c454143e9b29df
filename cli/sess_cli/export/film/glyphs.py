"""Characters as masks of whole cells, from the first font that has them."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sess_cli.export.film import boxes, fonts
from sess_cli.render.layout import cells

if TYPE_CHECKING:
    from PIL import Image, ImageFont

_KEPT = 20_000  # masks; text with endless accents must not fill the memory
_PICTURE = "\ufe0f"  # selects the emoji form of a character that is also a plain symbol
_PLAIN = "\ufe0e"
_JOINERS = {ord(character): None for character in (_PICTURE, _PLAIN, "\u200d")}
_BLANK = ("Cc", "Cf", "Zs", "Zl", "Zp", "Cs")
_SKINS = "🏻🏼🏽🏾🏿"  # skin tones, which are not drawn
_BITMAP_SIZES = (109, 160, 96, 64)  # sizes of bitmap emoji fonts
# Symbols that agents use and few fonts have, with similar replacements.
_ALIKE = {"⏺": "●", "⎿": "└", "⏵": "▶", "⏴": "◀", "⏶": "▲", "⏷": "▼"}
_ALIKE |= {chr(0x1F1E6 + letter): chr(65 + letter) for letter in range(26)}  # flags
_ALIKE |= dict.fromkeys("🔴🟠🟡🟢🔵🟣🟤", "⬤") | dict.fromkeys("🟥🟧🟨🟩🟦🟪🟫", "⬛")
# Packaged emoji have one colour; these need their own.
_TINTS = {
    "green": "✅🟢🟩💚",
    "red": "❌🔴🟥❗❓⛔🚫🛑🚨💥",
    "yellow": "🟡🟨⭐🌟✨💡⚡💛🔑🔒🔓",
    "blue": "🔵🟦💙🔷🔹📘🌊",
    "peach": "🟠🟧🔥🔶🔸📦🎉",
    "mauve": "🟣🟪💜🔮",
}
_TINT = {character: colour for colour, all_ in _TINTS.items() for character in all_}


@dataclass(frozen=True, slots=True)
class Glyph:
    """A mask of one cell's height, or a coloured picture (RGBA)."""

    image: Image.Image
    tint: str | None = None


def clusters(text: str) -> Iterator[str]:
    """Characters, each with the zero-width characters that follow it."""
    start = 0
    for at in range(1, len(text)):
        if text[at] > "\u02ff" and not cells(text[at]):
            continue
        yield text[start:at]
        start = at
    if text:
        yield text[start:]


class Glyphs:
    def __init__(self, place: fonts.Layout) -> None:
        self.width, self.height = place.cell_width, place.cell_height
        self.missing: set[str] = set()
        self._size = place.cell_width / fonts.ADVANCE
        # Centre the packaged font's capitals in the line.
        self._baseline = round((place.cell_height + 0.73 * self._size) / 2)
        self._kept: dict[tuple[str, bool, bool, bool], Glyph | None] = {}

    def glyph(self, cluster: str, *, bold: bool, italic: bool, loose: bool = False) -> Glyph | None:
        """None if invisible. `loose`: the next cell is empty, so a wide glyph may use it."""
        key = cluster, bold, italic, loose
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = self._made(cluster, bold, italic, loose)
        return self._kept[key]

    def _made(self, cluster: str, bold: bool, italic: bool, loose: bool) -> Glyph | None:
        width = max(1, cells(cluster))
        text = unicodedata.normalize("NFC", cluster.translate(_JOINERS))
        if not text or text[0] in _SKINS or unicodedata.category(text[0]) in _BLANK:
            return None
        base = text[0]
        room = self.width * (2 if loose else width)
        pictured = (width == 2 or (_PICTURE in cluster and loose)) and _PLAIN not in cluster
        coloured = fonts.coloured() if pictured else None
        if coloured and coloured.has(base):
            return Glyph(self._picture(coloured, base, room))
        base = _ALIKE.get(base, base)
        if boxes.drawn(base):
            return Glyph(boxes.mask(base, self.width, self.height))
        face = _face(base, bold, italic)
        own = self.width * width
        image = self._outline(face, base, width, room) if face else self._coarse(base, own)
        if image is None:
            self.missing.add(base)
            return Glyph(self._box(own))
        for mark in text[1:]:
            image = self._marked(image, mark)
        return Glyph(image, _TINT.get(text[0]))

    def _outline(self, face: fonts.Face, text: str, width: int, room: int) -> Image.Image:
        """Centred in its cells, or in `room` pixels if wider; shrunk if necessary."""
        from PIL import Image, ImageDraw

        own = self.width * width
        size = self._size if width == 1 else min(own * 0.92, self.height * 0.86)
        font = _font(face, size)
        left, top, right, bottom = font.getbbox(text, anchor="ls")
        extent = max(right - left, 1)
        if face in _main_faces() or extent <= own:
            room = own
        elif extent > room:
            font = _font(face, size * room / extent)
            left, top, right, bottom = font.getbbox(text, anchor="ls")
        x = (room - font.getlength(text)) / 2
        if x + left < 0 or x + right > room:
            x = (room - (right - left)) / 2 - left
        y: float = self._baseline
        middle = (self.height - (bottom - top)) / 2 - top
        if face.path.name == "emoji.ttf" or y + top < 0 or y + bottom > self.height:
            y = middle
        if face in _main_faces():
            x, y = 0, self._baseline
        image = Image.new("L", (room, self.height))
        ImageDraw.Draw(image).text((round(x), round(y)), text, 255, font, anchor="ls")
        return image

    def _picture(self, face: fonts.Face, text: str, room: int) -> Image.Image:
        from PIL import Image, ImageDraw

        font = _coloured_font(face)
        left, top, right, bottom = (round(edge) for edge in font.getbbox(text))
        large = Image.new("RGBA", (max(1, right - left), max(1, bottom - top)))
        ImageDraw.Draw(large).text((-left, -top), text, font=font, embedded_color=True)
        scale = min(room / large.width, self.height * 0.9 / large.height)
        size = max(1, round(large.width * scale)), max(1, round(large.height * scale))
        image = Image.new("RGBA", (room, self.height))
        place = (room - size[0]) // 2, (self.height - size[1]) // 2
        image.paste(large.resize(size, Image.Resampling.LANCZOS), place)
        return image

    def _coarse(self, text: str, room: int) -> Image.Image | None:
        from PIL import Image

        bits = fonts.bitmap(text)
        if bits is None:
            return None
        side = min(2 * self.width, self.height)
        size = min(room, side * bits.width // 16), side
        image = Image.new("L", (room, self.height))
        place = (room - size[0]) // 2, (self.height - side) // 2
        image.paste(bits.resize(size, Image.Resampling.BICUBIC), place)
        return image

    def _marked(self, image: Image.Image, mark: str) -> Image.Image:
        from PIL import Image, ImageChops, ImageDraw

        face = _face(mark, False, False)
        if face is None:
            above = self._coarse(mark, image.width)
            if above is None:
                self.missing.add(mark)
                return image
            return ImageChops.lighter(image, above)
        font = _font(face, self._size)
        left, _, right, _ = font.getbbox(mark, anchor="ls")
        above = Image.new("L", image.size)
        x = round((image.width - (right - left)) / 2 - left)
        ImageDraw.Draw(above).text((x, self._baseline), mark, 255, font, anchor="ls")
        return ImageChops.lighter(image, above)

    def _box(self, width: int) -> Image.Image:
        from PIL import Image, ImageDraw

        image = Image.new("L", (width, self.height))
        around = 1, self.height // 5, width - 2, self.height - self.height // 5
        ImageDraw.Draw(image).rectangle(around, outline=160)
        return image


@functools.cache
def _main_faces() -> frozenset[fonts.Face]:
    return frozenset(fonts.mono(bold=b, italic=i) for b in (False, True) for i in (False, True))


def _face(character: str, bold: bool, italic: bool) -> fonts.Face | None:
    main = fonts.mono(bold=bold, italic=italic)
    if main.has(character):
        return main
    for faces in (fonts.packaged(), fonts.system()):
        for face in faces:
            if face.has(character):
                return face
    return None


@functools.lru_cache(64)
def _font(face: fonts.Face, size: float) -> ImageFont.FreeTypeFont:
    from PIL import ImageFont

    engine = ImageFont.Layout.BASIC  # no ligatures: one character per cell
    return ImageFont.truetype(str(face.path), round(size * 4) / 4, face.index, layout_engine=engine)


@functools.lru_cache(4)
def _coloured_font(face: fonts.Face) -> ImageFont.FreeTypeFont:
    from PIL import ImageFont

    for size in _BITMAP_SIZES:
        try:
            return ImageFont.truetype(str(face.path), size, layout_engine=ImageFont.Layout.BASIC)
        except OSError:
            continue
    raise OSError(f"no usable size in {face.path}")
