"""How well a text matches, as an SQL function: bm25, at a bounded cost.

FTS5's own bm25 counts every event with a phrase to know how rare it is, which for common phrases of
a large index takes longer than the search. This one counts the first of them, and estimates the
rest from how close together they are. Up to that many both give the same.
"""

from __future__ import annotations

from math import log
from weakref import WeakSet

import apsw

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

NAME = "relevance"
COUNTED = 1000  # events with a phrase
# The constants of bm25.
_K1, _B = 1.2, 0.75
_LEAST = 1e-6  # for a phrase in more than half of all events


_known = WeakSet[apsw.Connection]()


class _Enough(Exception):
    """Enough events of a phrase were counted."""


def register(db: apsw.Connection) -> None:
    """Make it available as `relevance(event_index, top, WEIGHT...)`; higher is better.

    `top` is the largest number of an event.
    """
    if db not in _known:  # SQLite would keep each registration until the connection is closed
        db.register_fts5_function(NAME, _relevance)
        _known.add(db)


def _relevance(api: Any, *given: Any) -> float:
    top, *weights = given
    if api.aux_data is None:  # the first row of a query
        rows = api.row_count
        rarities = [_rarity(rows, _hits(api, phrase, top)) for phrase in range(api.phrase_count)]
        api.aux_data = rarities, api.column_total_size() / rows
    rarities, mean = api.aux_data
    length = _K1 * (1 - _B + _B * api.column_size() / mean)
    found = 0.0
    for phrase, rarity in enumerate(rarities):
        times = 0.0
        for weight, places in zip(weights, api.phrase_locations(phrase), strict=True):
            times += weight * len(places)
        found += rarity * times * (_K1 + 1) / (times + length)
    return found


def _hits(api: Any, phrase: int, top: int) -> float:
    """How many events have a phrase; the largest part of very many is estimated."""
    count = last = 0

    def count_one(row: Any, _: None) -> None:
        nonlocal count, last
        count += 1
        if count == COUNTED:
            last = row.rowid
            raise _Enough

    try:
        api.query_phrase(phrase, count_one, None)
    except _Enough:
        return float(min(api.row_count, count * max(1.0, top / last)))
    return count


def _rarity(rows: int, hits: float) -> float:
    return max(_LEAST, log((rows - hits + 0.5) / (hits + 0.5)))
