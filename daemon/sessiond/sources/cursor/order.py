"""Orders a conversation's records by its headers, and those they leave out by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessiond.sourcekit.base import Item
from sessiond.sourcekit.known_rows import KnownRow
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
        notes = {note.bubble_id for note in self._composer.notes}
        listed = []
        for bubble_id in self._composer.order or self._inline:
            key = self._key(bubble_id)
            if key and bubble_id not in notes:
                listed.append(key)
        inline = {key: 0 for bubble_id, key in self._inline.items() if bubble_id not in notes}
        order = arrange(listed, {**self._present, **inline}, self._times)
        self._insert_notes(order)
        if self._stored is None:
            return order
        return list(dict.fromkeys(self._stored + order))

    def _insert_notes(self, order: list[str]) -> None:
        for bubble_id, _, after in self._composer.notes:
            key = self._inline.get(bubble_id)
            before = self._key(after) if after else None
            if key is not None:
                order.insert(order.index(before) + 1 if before in order else len(order), key)

    def _key(self, bubble_id: str) -> str | None:
        """The key of a bubble that is there."""
        key = self._prefix + bubble_id
        if key in self._present:
            return key
        alias = self._aliases.get(bubble_id, "")
        return self._inline.get(bubble_id) or (alias if alias in self._present else None)

    def times(self, order: Sequence[str]) -> dict[str, int]:
        """Times by key of records that have none.

        They are in the headers. Older versions date only answers, by the moment of the request:
        then a prompt has the time of its answer, and anything else that of what precedes it.
        """
        found = {}
        for bubble_id, ts in self._composer.header_times.items():
            if key := self._key(bubble_id):
                found[key] = ts
        dated = found | self._times
        prompts = set(map(self._key, self._composer.prompts))
        previous = None
        for key, following in zip(order, [*order[1:], ""], strict=True):
            if key in dated:
                previous = dated[key]
                continue
            time = dated.get(following, previous) if key in prompts else previous
            if time is not None:
                found[key] = time
        return found
