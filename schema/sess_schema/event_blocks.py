"""Blocks of event numbers, each with an upper bound on the times of its events.

Numbers mostly grow with time, but what is imported today may be years old. The bounds let a search
find the newest of many matches without sorting all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from sess_schema.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

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


def newest_below(db: apsw.Connection, number: int) -> int | None:
    """A time that no event with a smaller number is later than; None if there is none."""
    found: int | None = db.execute(
        "SELECT max(newest) FROM event_blocks WHERE block <= ?", (number - 1 >> BITS,)
    ).get
    return found


def below(db: apsw.Connection, number: int) -> list[tuple[int, int, int]]:
    """(bound, first and last number) of the blocks below a number, the latest bound first."""
    found: list[Any] = db.execute(
        "SELECT newest, block FROM event_blocks WHERE block <= ? ORDER BY newest DESC, block DESC",
        (number - 1 >> BITS,),
    ).fetchall()
    return [
        (newest, block << BITS, min((block + 1 << BITS) - 1, number - 1)) for newest, block in found
    ]
