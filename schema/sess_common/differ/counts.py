"""How many lines an edit adds and removes: the same as the drawn diff, without drawing it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sess_common.differ.common import count_common
from sess_common.differ.lines import lines_of_patch, split


class Counts(NamedTuple):
    added: int
    removed: int


def count_between(old: str, new: str) -> Counts:
    if old == new:
        return Counts(0, 0)
    before, after = split(old, new)
    same = count_common(before, after) if before and after else 0
    return Counts(len(after) - same, len(before) - same)


def count_hunks(hunks: Iterable[dict[str, Any]]) -> Counts:
    signs = [line[:1] for hunk in hunks for line in hunk.get("lines", ())]
    return Counts(signs.count("+"), signs.count("-"))


def count_patch(text: str) -> Counts:
    signs = [sign for sign, *_ in lines_of_patch(text)]
    return Counts(signs.count("+"), signs.count("-"))
