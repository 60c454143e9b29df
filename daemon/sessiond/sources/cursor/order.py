"""Orders a conversation's records by its headers, and those they leave out by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


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
