"""Orders a conversation's records by its headers, and those they leave out by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessiond.engines.known_rows import KnownRow
from sessiond.sourcekit.base import Item
from sessiond.sources.cursor.composers import Composer


def arrange(
    listed: Sequence[str], present: Mapping[str, int], times: Mapping[str, int]
) -> list[str]:
    """Every key once; `present` has their rowids, used where times are missing."""
    order = list(dict.fromkeys(listed))
    named = set(order)
    left_out = sorted(
        (key for key in present if key not in named),
        key=lambda key: (key not in times, times.get(key, 0), present[key]),
    )
    if not left_out:
        return order
    dated = [key for key in left_out if key in times]
    merged: list[str] = []
    for key in order:
        while dated and key in times and times[dated[0]] < times[key]:
            merged.append(dated.pop(0))
        merged.append(key)
    return merged + dated + [key for key in left_out if key not in times]


class Arranged:
    """The keys of a conversation, in the order of its headers where known."""

    def __init__(
        self,
        composer: Composer,
        prefix: str,
        known: dict[str, KnownRow],
        present: dict[str, int],
        inline: dict[str, Any],
    ) -> None:
        self._composer = composer
        self._prefix = prefix
        self._present = present
        self._inline = {value[0]: key for key, value in inline.items()}
        self._aliases = {one.alias: key for key, one in known.items() if one.alias is not None}
        self._times = {key: one.ts for key, one in known.items() if one.ts is not None}
        self._stored: list[str] | None = None

    def stay(self, stored: list[str]) -> None:
        """Keep the stored order: the composer, which has the order, is gone."""
        self._stored = stored or None

    def keys(self, items: Sequence[Item] = ()) -> list[str]:
        for item in items:
            if item.alias is not None:
                self._aliases[item.alias] = item.key
            self._times.pop(item.key, None)
            if item.ts is not None:
                self._times[item.key] = item.ts
        listed = []
        for bubble_id in self._composer.order or self._inline:
            key = self._prefix + bubble_id
            if key not in self._present:
                key = self._inline.get(bubble_id) or self._aliases.get(bubble_id, "")
            if key in self._present or key in self._inline.values():
                listed.append(key)
        everything = {**self._present, **dict.fromkeys(self._inline.values(), 0)}
        order = arrange(listed, everything, self._times)
        if self._stored is None:
            return order
        return list(dict.fromkeys(self._stored + order))

    def header_times(self) -> dict[str, int]:
        """Times by key, from the headers."""
        found = {}
        for bubble_id, ts in self._composer.header_times.items():
            key = self._prefix + bubble_id
            found[key if key in self._present else self._aliases.get(bubble_id, key)] = ts
            if bubble_id in self._inline:
                found[self._inline[bubble_id]] = ts
        return found
