"""The characters of a font file, read from its `cmap` table: Pillow does not expose it."""

from __future__ import annotations

import bisect
import struct
from pathlib import Path

_UNICODE = {(0, 3), (0, 4), (0, 6), (3, 1), (3, 10)}  # platform and encoding


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


def read(path: Path, index: int = 0) -> Coverage:
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
                    return Coverage(_ranges(file.read(length)))
    except (OSError, struct.error, IndexError):
        pass
    return Coverage([])


def _ranges(table: bytes) -> list[tuple[int, int]]:
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
            best = _segments(table, offset)
    return best


def _segments(table: bytes, offset: int) -> list[tuple[int, int]]:
    count = struct.unpack_from(">H", table, offset + 6)[0] // 2
    shape = f">{count}H"
    ends = struct.unpack_from(shape, table, offset + 14)
    starts = struct.unpack_from(shape, table, offset + 16 + 2 * count)
    into = offset + 16 + 6 * count
    jumps = struct.unpack_from(shape, table, into)
    found = []
    for segment, (start, end, jump) in enumerate(zip(starts, ends, jumps, strict=True)):
        if start == 0xFFFF:
            continue
        if not jump:
            found.append((start, end))
            continue
        # Glyphs are listed one by one; 0 means no glyph.
        first = into + 2 * segment + jump
        glyphs = struct.unpack_from(f">{end - start + 1}H", table, first)
        found += [(code, code) for code, glyph in enumerate(glyphs, start) if glyph]
    return found
