"""The inputs of many calls as agents wrote them, read in the order of the archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apsw

from sess_schema.records import Records


class Place(NamedTuple):
    """Where the record of a call is; sorted places are in the order of the archive."""

    source: int
    retired: int
    offset: int
    length: int
    pointer: str
    event: int


def read(db: apsw.Connection, places: Iterable[Place]) -> Iterator[tuple[int, Any]]:
    """(event, input); what cannot be found any more is left out."""
    records = Records(db)
    for place in sorted(places):
        value = records.value(place[:4], place.pointer)
        if value is not None:
            yield place.event, value
