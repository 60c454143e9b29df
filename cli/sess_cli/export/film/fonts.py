"""The grid of cells, and fonts by character: packaged ones first, then the system's."""

from __future__ import annotations

import bisect
import functools
import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sess_common.errors import SessError

if TYPE_CHECKING:
    from PIL import Image


ASSETS = Path(__file__).parent / "assets"
ADVANCE = 0.6  # of the packaged font: cell width relative to font size

_SMALLEST = (20, 5)  # columns and lines
# Other fonts that may be installed, best for a grid first, with the index in a collection.
_IDEOGRAPHS = (
    ("NotoSansMonoCJKsc-Regular.otf", 0), ("NotoSansCJK-Regular.ttc", 2),
    ("NotoSansCJK-VF.otf.ttc", 2), ("NotoSansCJKsc-Regular.otf", 0),
    ("SourceHanSansSC-Regular.otf", 0), ("wqy-zenhei.ttc", 1), ("wqy-microhei.ttc", 1),
    ("DroidSansFallbackFull.ttf", 0), ("DroidSansFallback.ttf", 0), ("PingFang.ttc", 0),
    ("Hiragino Sans GB.ttc", 0), ("STHeiti Light.ttc", 0), ("AppleSDGothicNeo.ttc", 0),
    ("msyh.ttc", 0), ("YuGothM.ttc", 0), ("malgun.ttf", 0),
)  # fmt: skip
_WHATEVER = (
    ("Arial Unicode.ttf", 0), ("FreeMono.ttf", 0), ("FreeSans.ttf", 0), ("seguisym.ttf", 0),
    ("Apple Symbols.ttf", 0),
)  # fmt: skip
_COLOURED = ("NotoColorEmoji.ttf", "Apple Color Emoji.ttc", "seguiemj.ttf", "TwemojiMozilla.ttf")
_UNICODE = {(0, 3), (0, 4), (0, 6), (3, 1), (3, 10)}  # platform and encoding


@dataclass(frozen=True, slots=True)
class Layout:
    """The position of cells in a picture: a margin, a panel, the cells inside."""

    width: int
    height: int
    cell_width: int
    cell_height: int  # even, like `top`: rows begin at whole chroma samples
    columns: int
    lines: int
    left: int
    top: int
    margin: int

    def enlarged(self) -> Layout:
        """The same picture with cells twice as large."""
        return replace(
            self,
            cell_width=2 * self.cell_width,
            cell_height=2 * self.cell_height,
            columns=self.columns // 2,
            lines=self.lines // 2,
        )


def layout(width: int, height: int, font_size: int) -> Layout:
    """Sizes are rounded to even numbers, as encoders need."""
    width, height = max(2, width) & ~1, max(2, height) & ~1
    cell_width = max(3, round(font_size * ADVANCE))
    cell_height = (round(cell_width / ADVANCE * 1.3) + 1) & ~1
    margin = round(font_size * 0.6)
    columns = (width - 2 * margin - 2 * font_size) // cell_width
    lines = (height - 2 * margin - round(1.2 * font_size)) // cell_height
    if columns < _SMALLEST[0] or lines < _SMALLEST[1]:
        raise SessError(
            f"{width}x{height} is too small for font size {font_size}",
            hint="increase --width and --height, or decrease --font-size",
            code=2,
        )
    left = (width - columns * cell_width) // 2
    top = (height - lines * cell_height) // 2 & ~1
    return Layout(width, height, cell_width, cell_height, columns, lines, left, top, margin)


def grid(width: int, height: int, font_size: int) -> tuple[int, int]:
    """The number of columns and lines of a picture."""
    place = layout(width, height, font_size)
    return place.columns, place.lines


@dataclass(frozen=True, slots=True)
class Face:
    """A font file."""

    path: Path
    index: int = 0
    coloured: bool = False

    def has(self, character: str) -> bool:
        return character in _coverage(self.path, self.index)


def mono(*, bold: bool, italic: bool) -> Face:
    style = ("bold" if bold else "") + ("italic" if italic else "")
    return Face(ASSETS / f"mono-{style or 'regular'}.ttf")


def packaged() -> Iterator[Face]:
    """Packaged fallbacks for the monospace font, in order."""
    for name in ("symbols", "more-symbols", "emoji"):
        yield Face(ASSETS / f"{name}.ttf")


def coloured() -> Face | None:
    """The system's colour emoji font."""
    files = _installed(folders())
    return next((Face(files[n], coloured=True) for n in _COLOURED if n in files), None)


def system() -> tuple[Face, ...]:
    """The system's fonts for other scripts."""
    return _other_scripts(folders())


@functools.cache
def _other_scripts(places: tuple[str, ...]) -> tuple[Face, ...]:
    files = _installed(places)
    preferred = (*_IDEOGRAPHS, *_WHATEVER)
    noto = [name for name in sorted(files) if name.startswith("NotoSans")]
    plain = [name for name in noto if name.endswith(("-Regular.ttf", "-Regular.otf"))]
    return (
        *(Face(files[name], index) for name, index in preferred if name in files),
        *(Face(files[name]) for name in plain),
    )


@functools.cache
def _installed(places: tuple[str, ...]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for place in places:
        for folder, below, names in os.walk(place):
            below.sort()
            for name in names:
                if name.lower().endswith((".ttf", ".ttc", ".otf")):
                    files.setdefault(name, Path(folder, name))
    return files


def folders() -> tuple[str, ...]:
    """Where the system has its fonts."""
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return f"{home}/Library/Fonts", "/Library/Fonts", "/System/Library/Fonts"
    if sys.platform == "win32":
        own = os.path.join(os.environ.get("LOCALAPPDATA", home), "Microsoft", "Windows", "Fonts")
        return own, os.path.join(os.environ.get("WINDIR", r"C:\Windows"), "Fonts")
    data = os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share"
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    others = (os.path.join(folder, "fonts") for folder in shared.split(":") if folder)
    return f"{data}/fonts", f"{home}/.fonts", *others


@functools.cache
def _bitmaps() -> dict[str, bytes]:
    """Bitmaps of 16 rows and 8 or 16 columns for all of Unicode's first plane."""
    import zstandard

    body = zstandard.ZstdDecompressor().decompress((ASSETS / "bitmaps.zst").read_bytes())
    pictures: dict[str, bytes] = {}
    at = 0
    for size in (16, 32):
        (count,) = struct.unpack_from("<I", body, at)
        runs = struct.unpack_from(f"<{2 * count}H", body, at + 4)
        at += 4 + 4 * count
        for start, length in zip(runs[::2], runs[1::2], strict=True):
            for code in range(start, start + length):
                pictures[chr(code)] = body[at : at + size]
                at += size
    return pictures


def bitmap(character: str) -> Image.Image | None:
    """The last resort: coarse, but better than an empty box."""
    from PIL import Image

    bits = _bitmaps().get(character)
    if bits is None:
        return None
    return Image.frombytes("1", (len(bits) // 2, 16), bits).convert("L")


# -- the characters of a font file, from its `cmap` table: Pillow does not expose it


class Coverage:
    """A set of character ranges."""

    def __init__(self, ranges: list[tuple[int, int]]) -> None:
        ranges.sort()
        self._starts = [start for start, _ in ranges]
        self._ends = [end for _, end in ranges]

    def __contains__(self, character: str) -> bool:
        code = ord(character)
        at = bisect.bisect_right(self._starts, code) - 1
        return at >= 0 and code <= self._ends[at]


def read_coverage(path: Path, index: int = 0) -> Coverage:
    """The coverage of a font, or of one in a collection; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(12)
            if head[:4] == b"ttcf":
                file.seek(12 + 4 * index)
                file.seek(struct.unpack(">I", file.read(4))[0])
                head = file.read(12)
            for _ in range(struct.unpack(">H", head[4:6])[0]):
                tag, _sum, offset, length = struct.unpack(">4sIII", file.read(16))
                if tag == b"cmap":
                    file.seek(offset)
                    return Coverage(_coverage_ranges(file.read(length)))
    except (OSError, struct.error, IndexError):
        pass
    return Coverage([])


_coverage = functools.cache(read_coverage)


def _coverage_ranges(table: bytes) -> list[tuple[int, int]]:
    best: list[tuple[int, int]] = []
    for record in range(struct.unpack_from(">H", table, 2)[0]):
        platform, encoding, offset = struct.unpack_from(">HHI", table, 4 + 8 * record)
        if (platform, encoding) not in _UNICODE:
            continue
        (form,) = struct.unpack_from(">H", table, offset)
        if form == 12:
            (groups,) = struct.unpack_from(">I", table, offset + 12)
            entries = struct.iter_unpack(">III", table[offset + 16 : offset + 16 + 12 * groups])
            return [(start, end) for start, end, _glyph in entries]
        if form == 4:
            best = _coverage_segments(table, offset)
    return best


def _coverage_segments(table: bytes, offset: int) -> list[tuple[int, int]]:
    count = struct.unpack_from(">H", table, offset + 6)[0] // 2
    shape = f">{count}H"
    ends = struct.unpack_from(shape, table, offset + 14)
    starts = struct.unpack_from(shape, table, offset + 16 + 2 * count)
    into = offset + 16 + 6 * count
    jumps = struct.unpack_from(shape, table, into)
    ranges = []
    for segment, (start, end, jump) in enumerate(zip(starts, ends, jumps, strict=True)):
        if start == 0xFFFF:
            continue
        if not jump:
            ranges.append((start, end))
            continue
        # Glyphs are listed one by one; 0 means no glyph.
        first = into + 2 * segment + jump
        glyphs = struct.unpack_from(f">{end - start + 1}H", table, first)
        ranges += [(code, code) for code, glyph in enumerate(glyphs, start) if glyph]
    return ranges
