"""Gives the pieces of the full text that a load leaves the rank of their size.

FTS5 merges pieces of one level when there are sixteen. A load writes large ones at the lowest
level, where the next lines would have them merged with pieces of one line each, and again at
each level above: tens of megabytes for a line. So they get the level that merging would have
brought them to.

The list of pieces is the record 10 of the table `event_index_data`: a cookie of four bytes, then
numbers: levels, pieces, pages ever written; for each level the pieces that are being merged and
all pieces; for each piece its number, first and last page. Oldest pieces and levels come last
where FTS5 counts levels, and first inside of one.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw

_FANOUT = 16  # `automerge`
_COOKIE = 4
_EXTENDED = b"\xff\x00\x00\x01"  # a format that our table does not use
_LIST = "SELECT block FROM event_index_data WHERE id = 10"

Piece = tuple[int, int, int]  # number, first and last page


def sort_by_size(db: apsw.Connection) -> None:
    """Lift pieces to the level of their size. Nothing is written again but the list of them."""
    with db:
        before: bytes = db.execute(_LIST).get
        after = sorted_by_size(before)
        if after == before:
            return
        db.execute("UPDATE event_index_data SET block = ? WHERE id = 10", (after,))
    # FTS5 keeps the list in memory, and reads it again after a transaction that failed.
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO event_index (event_index, rank) VALUES ('automerge', ?)", (_FANOUT,))
    db.execute("ROLLBACK")


def sorted_by_size(listed: bytes) -> bytes:
    """The list with each piece at its level; as it was if a merge is under way."""
    if listed[_COOKIE : _COOKIE + len(_EXTENDED)] == _EXTENDED:
        return listed
    numbers = _numbers(listed[_COOKIE:])
    levels, _, written = next(numbers), next(numbers), next(numbers)
    oldest_first: list[tuple[int, Piece]] = []
    for level in range(levels):
        merging, count = next(numbers), next(numbers)
        if merging:
            return listed
        pieces = [(next(numbers), next(numbers), next(numbers)) for _ in range(count)]
        oldest_first[:0] = [(level, piece) for piece in pieces]
    placed: dict[int, list[Piece]] = {}
    highest = 63  # levels that FTS5 can count
    for level, piece in oldest_first:
        highest = min(highest, max(level, _level_of(piece[2] - piece[1] + 1)))
        placed.setdefault(highest, []).append(piece)
    sizes = range(max(placed) + 1) if placed else range(levels)
    body = [len(sizes), len(oldest_first), written]
    for level in sizes:
        here = placed.get(level, [])
        body += [0, len(here), *(number for piece in here for number in piece)]
    return listed[:_COOKIE] + b"".join(map(_varint, body))


def _level_of(pages: int) -> int:
    level = 0
    while pages >= _FANOUT ** (level + 1):
        level += 1
    return level


def _numbers(data: bytes) -> Iterator[int]:
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0


def _varint(value: int) -> bytes:
    """As SQLite writes numbers of less than 56 bits: seven in a byte, the highest first."""
    parts = [value & 0x7F]
    while value := value >> 7:
        parts.append(value & 0x7F | 0x80)
    return bytes(reversed(parts))
