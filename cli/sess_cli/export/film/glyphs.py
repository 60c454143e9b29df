"""Characters as masks of whole cells, from the first font that has them.

Box drawing, blocks and braille are drawn as geometry, so that neighbouring cells join.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image, ImageChops, ImageDraw, ImageFont

from sess_cli.export.film import fonts
from sess_cli.render.layout import cells

_KEPT = 20_000  # masks; text with endless accents must not fill the memory
_PICTURE = "\ufe0f"  # selects the emoji form of a character that is also a plain symbol
_PLAIN = "\ufe0e"
_JOINER = "\u200d"
_PEOPLE = frozenset("👦👧👨👩🧑👶🧒👴👵🧓")
_JOINERS = {ord(character): None for character in (_PICTURE, _PLAIN, _JOINER)}
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
_FINE = 4  # curves and slopes are drawn this many times larger, then scaled down
_ARMS = {
    "UP": ("up",), "DOWN": ("down",), "LEFT": ("left",), "RIGHT": ("right",),
    "HORIZONTAL": ("left", "right"), "VERTICAL": ("up", "down"),
}  # fmt: skip
_WEIGHTS = ("LIGHT", "HEAVY", "SINGLE", "DOUBLE")
_DASHES = {"DOUBLE": 2, "TRIPLE": 3, "QUADRUPLE": 4}
_SHADES = {"░": 64, "▒": 128, "▓": 191}
# Bits of ▖▗▘▙▚▛▜▝▞▟: upper left 1, upper right 2, lower left 4, lower right 8.
_QUADRANTS = dict(zip("▖▗▘▙▚▛▜▝▞▟", (4, 8, 1, 13, 9, 7, 11, 2, 6, 14), strict=True))


@dataclass(frozen=True, slots=True)
class Glyph:
    """A mask of one cell's height, or a coloured picture (RGBA)."""

    image: Image.Image
    tint: str | None = None


def clusters(text: str) -> Iterator[str]:
    """Characters, each with the zero-width characters that follow it and emoji joined to it."""
    start = 0
    for at in range(1, len(text)):
        if text[at] > "\u02ff" and (
            not cells(text[at]) or (text[at - 1] == _JOINER and text[at] > "\u2189")
        ):
            continue
        yield text[start:at]
        start = at
    if text:
        yield text[start:]


def taken_by(cluster: str) -> int:
    """Its cells: emoji that are joined are drawn as one."""
    return 2 if _JOINER in cluster and cells(cluster) > 1 else cells(cluster)


class Glyphs:
    """Makes the mask of each character once."""

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
        width = max(1, taken_by(cluster))
        members = [one[0] for one in cluster.split(_JOINER) if one and one[0] in _PEOPLE]
        if len(members) > 1:
            return self._family(members, bold=bold)
        if _JOINER in cluster and width > 1:
            cluster = cluster.partition(_JOINER)[0]  # of a person at work, the person
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
        if is_geometry(base):
            return Glyph(geometry_mask(base, self.width, self.height))
        face = _face(base, bold, italic)
        own = self.width * width
        image = self._outline(face, base, width, room) if face else self._coarse(base, own)
        if image is None:
            self.missing.add(base)
            return Glyph(self._box(own))
        for mark in text[1:]:
            image = self._marked(image, mark)
        return Glyph(image, _TINT.get(text[0]))

    def _family(self, members: list[str], *, bold: bool) -> Glyph:
        """Up to four, half as large, where one would be."""
        size = 2 * self.width, self.height
        whole: Image.Image | None = None
        for number, member in enumerate(members[:4]):
            glyph = self.glyph(member, bold=bold, italic=False)
            if glyph is None:
                continue
            small = glyph.image.resize((size[0] // 2, size[1] // 2), Image.Resampling.LANCZOS)
            whole = whole or Image.new(small.mode, size)
            row, column = divmod(number, 2)
            top = row * size[1] // 2 if len(members) > 2 else size[1] // 4
            whole.paste(small, (column * size[0] // 2, top))
        return Glyph(whole or self._box(size[0]))

    def _outline(self, face: fonts.Face, text: str, width: int, room: int) -> Image.Image:
        """Centred in its cells, or in `room` pixels if wider; shrunk if necessary."""
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
    engine = ImageFont.Layout.BASIC  # no ligatures: one character per cell
    return ImageFont.truetype(str(face.path), round(size * 4) / 4, face.index, layout_engine=engine)


@functools.lru_cache(4)
def _coloured_font(face: fonts.Face) -> ImageFont.FreeTypeFont:
    for size in _BITMAP_SIZES:
        try:
            return ImageFont.truetype(str(face.path), size, layout_engine=ImageFont.Layout.BASIC)
        except OSError:
            continue
    raise OSError(f"no usable size in {face.path}")


# -- box drawing, blocks and braille


def is_geometry(character: str) -> bool:
    return "\u2500" <= character <= "\u259f" or "\u2800" <= character <= "\u28ff"


def geometry_mask(character: str, width: int, height: int) -> Image.Image:
    """The character as a mask of one cell."""
    if character in _SHADES:
        return Image.new("L", (width, height), _SHADES[character])
    words = unicodedata.name(character).split()
    curved = words[0] == "BOX" and ("ARC" in words or "DIAGONAL" in words)
    scale = _FINE if curved else 1
    image = Image.new("L", (width * scale, height * scale))
    draw = ImageDraw.Draw(image)
    if character >= "\u2800":
        _braille(draw, ord(character) - 0x2800, width, height)
    elif character >= "\u2580":
        _block(draw, character, width, height)
    else:
        _box_lines(draw, words[2:], width * scale, height * scale, _stroke(width) * scale)
    return image.resize((width, height), Image.Resampling.BOX) if curved else image


def _stroke(width: int) -> int:
    return max(1, round(width / 9))


def _rectangle(  # noqa: PLR0917 - as everybody names the edges of a box
    draw: ImageDraw.ImageDraw, left: int, top: int, right: int, bottom: int, fill: int = 255
) -> None:
    if right > left and bottom > top:
        draw.rectangle((left, top, right - 1, bottom - 1), fill=fill)


def _box_lines(
    draw: ImageDraw.ImageDraw, words: list[str], width: int, height: int, t: int
) -> None:
    if "DIAGONAL" in words:
        if "CROSS" in words or "UPPER RIGHT" in " ".join(words):
            draw.line((width, 0, 0, height), fill=255, width=t)
        if "CROSS" in words or "UPPER LEFT" in " ".join(words):
            draw.line((0, 0, width, height), fill=255, width=t)
    elif "DASH" in words:
        _dashes(draw, words, width, height, t)
    elif "ARC" in words:
        _arc(draw, words, width, height, t)
    else:
        _arms(draw, _weights(" ".join(words)), width, height, t)


@functools.cache
def _weights(name: str) -> dict[str, str]:
    """The weight of each arm from the centre, parsed from `DOWN LIGHT AND RIGHT UP HEAVY`."""
    pieces = [piece.split() for piece in name.split(" AND ")]
    common = next(word for word in name.split() if word in _WEIGHTS)
    arms: dict[str, str] = {}
    for piece in pieces:
        weight = next((word for word in piece if word in _WEIGHTS), common)
        for word in piece:
            arms |= dict.fromkeys(_ARMS.get(word, ()), weight)
    return arms


def _arms(draw: ImageDraw.ImageDraw, arms: dict[str, str], width: int, height: int, t: int) -> None:
    across, down = (width - t) // 2, (height - t) // 2  # where a light stroke begins

    def arm(side: str, spread: int, reach: int, fill: int = 255) -> None:
        """From an edge to the far side of the stroke it meets, `spread` wider on each side."""
        left, right = across - spread, across + t + spread
        top, bottom = down - spread, down + t + spread
        if side == "up":
            _rectangle(draw, left, 0, right, down + t + reach, fill)
        elif side == "down":
            _rectangle(draw, left, down - reach, right, height, fill)
        elif side == "left":
            _rectangle(draw, 0, top, across + t + reach, bottom, fill)
        else:
            _rectangle(draw, across - reach, top, width, bottom, fill)

    def met(side: str) -> int:
        """How far strokes crossing this arm extend beyond a light one."""
        crossing = ("left", "right") if side in ("up", "down") else ("up", "down")
        return max((0 if arms.get(s) in (None, "LIGHT", "SINGLE") else t) for s in crossing)

    double = [side for side, weight in arms.items() if weight == "DOUBLE"]
    for side in double:
        arm(side, t, met(side))
    for side in double:
        arm(side, 0, 0, fill=0)
    for side, weight in arms.items():
        if weight == "HEAVY":
            arm(side, t, met(side))
        elif weight != "DOUBLE":
            opposite = {"up": "down", "down": "up", "left": "right", "right": "left"}[side]
            crossed = met(side) and "DOUBLE" in arms.values()
            # A single stroke that ends at a double one stops at the near line.
            if crossed and opposite not in arms and _through(arms, side):
                arm(side, 0, -2 * t)
            else:
                arm(side, 0, met(side))


def _through(arms: dict[str, str], side: str) -> bool:
    """Whether the crossing stroke goes through, as in ╤."""
    crossing = ("left", "right") if side in ("up", "down") else ("up", "down")
    return all(s in arms for s in crossing)


def _dashes(draw: ImageDraw.ImageDraw, words: list[str], width: int, height: int, t: int) -> None:
    count = next(_DASHES[word] for word in words if word in _DASHES)
    spread = t if words[0] == "HEAVY" else 0
    across, down = (width - t) // 2, (height - t) // 2
    flat = "HORIZONTAL" in words
    length = width if flat else height
    for index in range(count):
        begin, end = index * length // count, (index + 1) * length // count
        end = max(begin + 1, end - max(1, (end - begin) // 3))
        if flat:
            _rectangle(draw, begin, down - spread, end, down + t + spread)
        else:
            _rectangle(draw, across - spread, begin, across + t + spread, end)


def _arc(draw: ImageDraw.ImageDraw, words: list[str], width: int, height: int, t: int) -> None:
    # Strokes are aligned with straight ones: at whole pixels before scaling.
    across = (width // _FINE - t // _FINE) // 2 * _FINE
    down = (height // _FINE - t // _FINE) // 2 * _FINE
    radius = min(width - across, across + t, down + t)
    right, below = "RIGHT" in words, "DOWN" in words
    x = across + radius if right else across + t - radius
    y = down + radius if below else down + t - radius
    begin = {(True, True): 180, (False, True): 270, (False, False): 0, (True, False): 90}
    at = begin[right, below]
    draw.arc((x - radius, y - radius, x + radius - 1, y + radius - 1), at, at + 90, 255, t)
    if right:
        _rectangle(draw, x, down, width, down + t)
    else:
        _rectangle(draw, 0, down, x, down + t)
    if below:
        _rectangle(draw, across, y, across + t, height)
    else:
        _rectangle(draw, across, 0, across + t, y)


def _block(draw: ImageDraw.ImageDraw, character: str, width: int, height: int) -> None:
    code = ord(character)
    if character in _QUADRANTS:
        for bit in range(4):
            if _QUADRANTS[character] >> bit & 1:
                left, top = bit % 2 * (width // 2), bit // 2 * (height // 2)
                right = width if bit % 2 else width // 2
                _rectangle(draw, left, top, right, height if bit // 2 else height // 2)
    elif character == "▀":
        _rectangle(draw, 0, 0, width, height // 2)
    elif character == "▐":
        _rectangle(draw, width // 2, 0, width, height)
    elif character == "▔":
        _rectangle(draw, 0, 0, width, max(1, round(height / 8)))
    elif character == "▕":
        _rectangle(draw, width - max(1, round(width / 8)), 0, width, height)
    elif code <= 0x2588:
        _rectangle(draw, 0, height - max(1, round(height * (code - 0x2580) / 8)), width, height)
    else:
        _rectangle(draw, 0, 0, max(1, round(width * (0x2590 - code) / 8)), height)


def _braille(draw: ImageDraw.ImageDraw, dots: int, width: int, height: int) -> None:
    size = max(1, round(width / 5))
    for bit in range(8):
        if dots >> bit & 1:
            column, row = (bit // 3, bit % 3) if bit < 6 else (bit - 6, 3)
            x = round(width * (1 + 2 * column) / 4 - size / 2)
            y = round(height * (1 + 2 * row) / 8 - size / 2)
            _rectangle(draw, x, y, x + size, y + size)
