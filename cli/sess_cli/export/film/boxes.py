"""Box drawing, blocks and braille drawn as geometry, so that neighbouring cells join."""

from __future__ import annotations

import functools
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

_FINE = 4  # curves and slopes are drawn this many times larger, then scaled down
_ARMS = {
    "UP": ("up",),
    "DOWN": ("down",),
    "LEFT": ("left",),
    "RIGHT": ("right",),
    "HORIZONTAL": ("left", "right"),
    "VERTICAL": ("up", "down"),
}
_WEIGHTS = ("LIGHT", "HEAVY", "SINGLE", "DOUBLE")
_DASHES = {"DOUBLE": 2, "TRIPLE": 3, "QUADRUPLE": 4}
_SHADES = {"░": 64, "▒": 128, "▓": 191}
# Bits of ▖▗▘▙▚▛▜▝▞▟: upper left 1, upper right 2, lower left 4, lower right 8.
_QUADRANTS = dict(zip("▖▗▘▙▚▛▜▝▞▟", (4, 8, 1, 13, 9, 7, 11, 2, 6, 14), strict=True))


def drawn(character: str) -> bool:
    return "\u2500" <= character <= "\u259f" or "\u2800" <= character <= "\u28ff"


def mask(character: str, width: int, height: int) -> Image.Image:
    """The character as a mask of one cell."""
    from PIL import Image, ImageDraw

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
        _lines(draw, words[2:], width * scale, height * scale, _stroke(width) * scale)
    return image.resize((width, height), Image.Resampling.BOX) if curved else image


def _stroke(width: int) -> int:
    return max(1, round(width / 9))


def _rectangle(  # noqa: PLR0917 - as everybody names the edges of a box
    draw: ImageDraw.ImageDraw, left: int, top: int, right: int, bottom: int, fill: int = 255
) -> None:
    if right > left and bottom > top:
        draw.rectangle((left, top, right - 1, bottom - 1), fill=fill)


def _lines(draw: ImageDraw.ImageDraw, words: list[str], width: int, height: int, t: int) -> None:
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
