# ruff: noqa: INP001
"""Make the fonts in cli/sess_cli/export/film/assets from Debian's and npm's packages.

    python -m venv /tmp/fonts/venv && /tmp/fonts/venv/bin/pip install fonttools brotli zstandard
    cd /tmp/fonts
    apt-get download fonts-jetbrains-mono fonts-dejavu-core fonts-dejavu-extra unifont fonts-unifont
    for package in *.deb; do dpkg-deb -x $package .; done
    npm pack @fontsource/noto-emoji && tar xzf fontsource-noto-emoji-*.tgz
    venv/bin/python .../scripts/pack_fonts.py /tmp/fonts

Each font keeps the characters that earlier ones lack, without ligatures and glyph names; only the
first keeps its hints. The same packages give the same files.
"""

from __future__ import annotations

import argparse
import struct
import sys
import unicodedata
from collections.abc import Collection
from pathlib import Path

import zstandard
from fontTools import subset
from fontTools.ttLib import TTFont

TARGET = Path(__file__).parent.parent / "cli" / "sess_cli" / "export" / "film" / "assets"
MONO = "usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-{}.ttf"
DEJAVU = "usr/share/fonts/truetype/dejavu/{}.ttf"
EMOJI = "package/files/noto-emoji-emoji-400-normal.woff2"
BITMAPS = "usr/share/unifont/unifont.hex"

# Drawn as shapes, so that neighbours join: box drawing, blocks, braille.
DRAWN = {*range(0x2500, 0x25A0), *range(0x2800, 0x2900)}
# In JetBrains Mono the chevron of prompts looks like a parenthesis at small sizes.
UNLIKE = {ord("❯"), ord("❮")}
# Characters in sessions: no private use, no mathematical alphabets beyond plane 0.
SYMBOLS = {*range(0x2000, 0x2E00), *range(0xFB00, 0xFB07), 0xFFFD}
HEBREW = {*range(0x0590, 0x0600), *range(0xFB1D, 0xFB50)}
POWERLINE = set(range(0xE0A0, 0xE0B4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", type=Path, help="directory of the unpacked packages")
    root = parser.parse_args().packages
    TARGET.mkdir(exist_ok=True)
    known = set(DRAWN)
    for style in ("Regular", "Bold", "Italic", "BoldItalic"):
        font = root / MONO.format(style)
        packed(font, f"mono-{style.lower()}.ttf", plain(font) - DRAWN - UNLIKE, hints=True)
    known |= plain(root / MONO.format("Regular")) - UNLIKE
    for name, source, wanted in (
        ("symbols.ttf", root / DEJAVU.format("DejaVuSansMono"), None),
        ("more-symbols.ttf", root / DEJAVU.format("DejaVuSans"), SYMBOLS | HEBREW),
        ("emoji.ttf", root / EMOJI, None),
    ):
        left = plain(source) - known
        packed(source, name, left if wanted is None else left & wanted)
        known |= left if wanted is None else left & wanted
    bitmaps(root / BITMAPS, TARGET / "bitmaps.zst", known)
    total = sum(file.stat().st_size for file in TARGET.iterdir())
    print(f"{TARGET}: {total:,} bytes", file=sys.stderr)


def plain(path: Path) -> set[int]:
    """The printable characters of a font."""
    with TTFont(path) as font:
        return {
            code
            for code in font.getBestCmap()
            if code in POWERLINE or unicodedata.category(chr(code)) not in ("Co", "Cn", "Cc", "Cf")
        }


def packed(source: Path, name: str, characters: Collection[int], *, hints: bool = False) -> None:
    options = subset.Options(
        layout_features=[],
        hinting=hints,
        glyph_names=False,
        legacy_kern=False,
        notdef_outline=True,
        name_IDs=[0, 1, 2, 13],
        drop_tables=["DSIG", "GPOS", "GSUB", "GDEF", "FFTM", "meta", "STAT", "fvar", "gvar"],
        recalc_timestamp=False,
    )
    font = subset.load_font(str(source), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.flavor = None
    font.save(TARGET / name)
    size = (TARGET / name).stat().st_size
    print(f"{name}: {len(characters):,} characters, {size:,} bytes", file=sys.stderr)


def bitmaps(source: Path, target: Path, known: Collection[int]) -> None:
    """Unifont's 16-row glyphs, first narrow, then wide: runs of characters, then bitmaps."""
    narrow: dict[int, bytes] = {}
    wide: dict[int, bytes] = {}
    for line in source.read_text().splitlines():
        number, _, picture = line.partition(":")
        code, bits = int(number, 16), bytes.fromhex(picture)
        if code in known or unicodedata.category(chr(code)) in ("Co", "Cn", "Cc", "Cs"):
            continue
        (wide if len(bits) == 32 else narrow)[code] = bits
    body = b""
    for group in (narrow, wide):
        codes = sorted(group)
        runs: list[list[int]] = []
        for code in codes:
            if runs and sum(runs[-1]) == code:
                runs[-1][1] += 1
            else:
                runs.append([code, 1])
        body += struct.pack("<I", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs)
        body += b"".join(group[code] for code in codes)
    target.write_bytes(zstandard.ZstdCompressor(level=22).compress(body))
    size = target.stat().st_size
    print(f"{target.name}: {len(narrow) + len(wide):,} characters, {size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
