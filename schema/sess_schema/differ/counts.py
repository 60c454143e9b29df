"""How many lines an edit adds and removes: what a drawn diff would show, without drawing it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sess_schema.differ.common import count_common
from sess_schema.differ.lines import lines_of_hunks, lines_of_patch, split
from sess_schema.differ.words import Raw


class Counts(NamedTuple):
    added: int
    removed: int


def count_between(old: str, new: str) -> Counts:
    if old == new:
        return Counts(0, 0)
    before, after = split(old, new)
    same = count_common(before, after) if before and after else 0
    return Counts(len(after) - same, len(before) - same)


def count_hunks(hunks: object) -> Counts:
    return _counted(lines_of_hunks(hunks))


def count_patch(text: str) -> Counts:
    return _counted(lines_of_patch(text))


def _counted(raw: Iterable[Raw]) -> Counts:
    signs = [line[0] for line in raw]
    return Counts(signs.count("+"), signs.count("-"))
