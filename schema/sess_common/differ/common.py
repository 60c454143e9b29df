"""What two sequences of lines or words have in common."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

_LARGEST_TABLE = 25_000_000  # bits: 5,000 lines against 5,000 with no unique line to split at
_MOST_LOOKS = 20  # per line, on average, for lines to split at; hostile texts nest forever
_MOST_LINES = 200_000  # between the common ends; above this, everything counts as replaced

Pairs = list[tuple[int, int]]


def common(a: Sequence[str], b: Sequence[str]) -> Pairs:
    """Pairs of equal lines, ascending on both sides.

    The texts are first split at lines that occur once on each side: this is fast, and reads better
    than the longest common subsequence, which tends to match blank lines and brackets.
    """
    found, undivided = _divided(a, b)
    for a_from, a_to, b_from, b_to in undivided:
        found += [(a_from + i, b_from + j) for i, j in longest(a[a_from:a_to], b[b_from:b_to])]
    return sorted(found)


def count_common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many pairs `common` finds, at lower cost."""
    found, undivided = _divided(a, b)
    return len(found) + sum(
        _longest_length(a[a_from:a_to], b[b_from:b_to]) for a_from, a_to, b_from, b_to in undivided
    )


def _divided(a: Sequence[str], b: Sequence[str]) -> tuple[Pairs, list[tuple[int, int, int, int]]]:
    """Pairs of lines that split both texts, and the ranges between that still share lines."""
    found: Pairs = []
    undivided: list[tuple[int, int, int, int]] = []
    waiting = [(0, len(a), 0, len(b))]
    looked = 0
    while waiting:
        a_from, a_to, b_from, b_to = waiting.pop()
        while a_from < a_to and b_from < b_to and a[a_from] == b[b_from]:
            found.append((a_from, b_from))
            a_from, b_from = a_from + 1, b_from + 1
        while a_from < a_to and b_from < b_to and a[a_to - 1] == b[b_to - 1]:
            a_to, b_to = a_to - 1, b_to - 1
            found.append((a_to, b_to))
        if a_from == a_to or b_from == b_to or a_to - a_from + b_to - b_from > _MOST_LINES:
            continue
        some_a, some_b = a[a_from:a_to], b[b_from:b_to]
        if set(some_a).isdisjoint(some_b):
            continue
        looked += len(some_a) + len(some_b)
        anchors = (
            [(a_from + i, b_from + j) for i, j in _unique(some_a, some_b)]
            if looked <= _MOST_LOOKS * (len(a) + len(b))
            else []
        )
        if anchors:
            found += anchors
            for i, j in [*anchors, (a_to, b_to)]:
                if a_from < i and b_from < j:
                    waiting.append((a_from, i, b_from, j))
                a_from, b_from = i + 1, j + 1
        elif len(some_a) * len(some_b) <= _LARGEST_TABLE:
            undivided.append((a_from, a_to, b_from, b_to))
    return found, undivided


def _unique(a: Sequence[str], b: Sequence[str]) -> Pairs:
    """The longest ascending run of lines that occur exactly once on both sides."""
    often_a, often_b = Counter(a), Counter(b)
    places = {line: j for j, line in enumerate(b) if often_b[line] == 1 == often_a[line]}
    pairs = [(i, places[line]) for i, line in enumerate(a) if line in places]
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        ends[pile : pile + 1] = [number]
    chosen: Pairs = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def longest(a: Sequence[str], b: Sequence[str]) -> Pairs:
    """A longest common subsequence; each row of the table is one integer, a bit per cell."""
    rows = _table(a, b)
    found: Pairs = []
    i, j = len(a), len(b)
    while i and j:
        if rows[i - 1] >> j - 1 & 1:
            j -= 1
            continue
        i -= 1
        if not i or rows[i - 1] >> j - 1 & 1:
            j -= 1
            found.append((i, j))
    return found[::-1]


def _longest_length(a: Sequence[str], b: Sequence[str]) -> int:
    """In the last row of the table, each zero is one element of the subsequence."""
    return len(b) - _table(a, b)[-1].bit_count()


def _table(a: Sequence[str], b: Sequence[str]) -> list[int]:
    places: dict[str, int] = {}
    for j, one in enumerate(b):
        places[one] = places.get(one, 0) | 1 << j
    full = (1 << len(b)) - 1
    row, rows = full, []
    for one in a:
        hit = row & places.get(one, 0)
        row = (row + hit | row - hit) & full
        rows.append(row)
    return rows
