"""Damages an index file the way disks do, and knows which archived pieces it spared."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import apsw

PAGE = 1024


def whereabouts(index: Path, size: int = PAGE) -> dict[int, tuple[bytes, set[int]]]:
    """By chunk: its packed bytes and the pages they are on, found by searching the file."""
    raw = index.read_bytes()
    found = {}
    with closing(apsw.Connection(str(index))) as db:
        for key, data in db.execute("SELECT id, data FROM chunks"):
            found[key] = data, _pages_of(raw, bytes(data), size)
    return found


def _pages_of(raw: bytes, data: bytes, size: int) -> set[int]:
    """The first part is on a leaf page, the others fill overflow pages behind a 4-byte number."""
    pages, at = set(), 0
    while at < len(data):
        # A page that became an inner one keeps old rows, and comes first. Few bytes may be on the
        # leaf; the number of the next page may begin like the data.
        at, start = next(
            (at - back, found)
            for length in (64, 24, 12)
            for back in range(min(at, 3) + 1)
            if (found := raw.rfind(data[at - back : at - back + length])) >= 0
        )
        page = start // size
        pages.add(page)
        room = (page + 1) * size - start
        same = 0
        while same < min(room, len(data) - at) and raw[start + same] == data[at + same]:
            same += 1
        at += same
    return pages


def flip_bits(raw: bytearray, chance: random.Random) -> set[int]:
    touched = set()
    for _ in range(chance.randint(1, 20)):
        at = chance.randrange(len(raw))
        raw[at] ^= 1 << chance.randrange(8)
        touched.add(at // PAGE)
    return touched


def tear_pages(raw: bytearray, chance: random.Random) -> set[int]:
    """Sectors of some pages contain something else."""
    touched = set()
    for _ in range(chance.randint(1, 4)):
        page = chance.randrange(len(raw) // PAGE)
        sector = page * PAGE + 512 * chance.randrange(PAGE // 512)
        length = 512 * chance.randint(1, 8)
        end = min(sector + length, (page + 1) * PAGE)
        raw[sector:end] = chance.randbytes(end - sector)
        touched.add(page)
    return touched


def zero_pages(raw: bytearray, chance: random.Random) -> set[int]:
    pages = {chance.randrange(len(raw) // PAGE) for _ in range(chance.randint(1, 5))}
    for page in pages:
        raw[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    return pages


def truncate(raw: bytearray, chance: random.Random) -> set[int]:
    size = chance.randrange(PAGE, len(raw))
    touched = set(range(size // PAGE, len(raw) // PAGE))
    del raw[size:]
    return touched


def lose_the_header(raw: bytearray, chance: random.Random) -> set[int]:
    raw[: chance.choice((100, 512, PAGE))] = bytes(1)
    raw[:0] = bytes(PAGE - len(raw) % PAGE) if len(raw) % PAGE else b""
    return {0}


KINDS = (flip_bits, tear_pages, zero_pages, truncate, lose_the_header)
