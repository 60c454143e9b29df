"""Blocks of event numbers, each with an upper bound on the times of its events.

Numbers mostly grow with time, but what is imported today may be years old. The bounds let a search
find the newest of many matches without sorting all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

BITS = 9  # 512 numbers


def note(db: apsw.Connection, events: Iterable[tuple[int, int | None]]) -> None:
    """Raise the bounds for new events, given as (number, time)."""
    newest: dict[int, int] = {}
    for number, ts in events:
        if ts is not None and ts > newest.get(number >> BITS, -1):
            newest[number >> BITS] = ts
    db.executemany(
        "INSERT INTO event_blocks (block, newest) VALUES (?, ?)"
        " ON CONFLICT (block) DO UPDATE SET newest = max(newest, excluded.newest)",
        newest.items(),
    )


def between(db: apsw.Connection, first: int, last: int) -> list[tuple[int, int, int]]:
    """(bound, first and last number) of the blocks in a range, the latest bound first.

    Blocks without a dated event come last, with the bound -1.
    """
    if first > last:
        return []
    bounds: dict[int, int] = dict.fromkeys(range(first >> BITS, (last >> BITS) + 1), -1)
    bounds.update(
        db.execute(
            "SELECT block, newest FROM event_blocks WHERE block BETWEEN ? AND ?",
            (first >> BITS, last >> BITS),
        )
    )
    return sorted(
        (
            (newest, max(first, block << BITS), min(last, (block + 1 << BITS) - 1))
            for block, newest in bounds.items()
        ),
        reverse=True,
    )
