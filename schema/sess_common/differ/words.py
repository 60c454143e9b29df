"""Lines of a diff with the changed words marked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sess_common.differ.common import longest

Raw = tuple[str, int | None, int | None, str]  # sign, number before, number after, text

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_LARGEST_BLOCK = 400  # consecutive replaced lines that are still compared word by word
_MOST_PAIRS = 2_000
_LONGEST_LINE = 2_000  # characters; in longer lines only the common ends are found
_SIMILAR = 0.5


@dataclass(slots=True)
class DiffLine:
    """`@` marks omitted lines, or starts a hunk or a file of a patch."""

    sign: str  # " ", "+", "-" or "@"
    old: int | None
    new: int | None
    runs: list[tuple[str, bool]] = field(default_factory=list)  # text, and whether it changed

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.runs)


def marked(raw: list[Raw]) -> list[DiffLine]:
    lines = [DiffLine(sign, old, new, [(text, False)]) for sign, old, new, text in raw]
    pairs = 0
    at = 0
    while at < len(lines) and pairs < _MOST_PAIRS:
        removed = at
        while at < len(lines) and lines[at].sign == "-":
            at += 1
        added = at
        while at < len(lines) and lines[at].sign == "+":
            at += 1
        if removed < added < at and at - removed <= 2 * _LARGEST_BLOCK:
            pairs += _mark_block(lines[removed:added], lines[added:at])
        at += removed == at
    return lines


def _mark_block(removed: list[DiffLine], added: list[DiffLine]) -> int:
    """Compare each removed line with the next similar added one."""
    aligned = len(removed) == len(added)
    old, new = [[_Words(line.text) for line in lines] for lines in (removed, added)]
    tried = 0
    after = 0
    for number, line in enumerate(removed):
        others = [number] if aligned else range(after, min(after + 8, len(added)))
        for other in others:
            tried += 1
            both = _compared(old[number], new[other])
            if both is not None:
                line.runs, added[other].runs = both
                after = other + 1
                break
    return tried


class _Words:
    """A line split into words; white space does not count towards similarity."""

    __slots__ = ("different", "line", "size", "words")

    def __init__(self, line: str) -> None:
        self.line = line
        self.words = _WORDS.findall(line) if len(line) <= _LONGEST_LINE else []
        self.different = set(self.words)
        self.size = len("".join(line.split()))


def _compared(
    old: _Words, new: _Words
) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]] | None:
    """Both lines with their changed words marked; None if they have too little in common."""
    if max(len(old.line), len(new.line)) > _LONGEST_LINE:
        return _compared_ends(old.line, new.line)
    least = _SIMILAR * (old.size + new.size)
    shared = old.different & new.different
    # No common subsequence is longer; this alone rules out most lines that differ.
    if 2 * sum(len(word) for word in old.words if word in shared and not word.isspace()) < least:
        return None
    a, b = old.words, new.words
    pairs = longest(a, b)
    same = sum(len(a[i]) for i, _ in pairs if not a[i].isspace())
    if 2 * same < least or not same:
        return None
    return _runs(a, {i for i, _ in pairs}), _runs(b, {j for _, j in pairs})


def _compared_ends(
    old: str, new: str
) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]] | None:
    shorter = min(len(old), len(new))
    head = _equal(old[:shorter], new[:shorter])
    rest = shorter - head
    tail = _equal(old[len(old) - rest :][::-1], new[len(new) - rest :][::-1])
    if 2 * (head + tail) < _SIMILAR * (len(old) + len(new)):
        return None
    return _ends(old, head, tail), _ends(new, head, tail)


def _ends(line: str, head: int, tail: int) -> list[tuple[str, bool]]:
    end = len(line) - tail
    runs = [(line[:head], False), (line[head:end], True), (line[end:], False)]
    return [run for run in runs if run[0]]


def _equal(a: str, b: str) -> int:
    """The length of the common prefix of two equally long texts."""
    low, high = 0, len(a)
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _runs(words: list[str], same: set[int]) -> list[tuple[str, bool]]:
    """Words merged into runs; white space between two changed words counts as changed."""
    runs: list[tuple[str, bool]] = []
    for number, word in enumerate(words):
        changed = number not in same or (
            word.isspace()
            and 0 < number < len(words) - 1
            and number - 1 not in same
            and number + 1 not in same
        )
        if runs and runs[-1][1] == changed:
            runs[-1] = (runs[-1][0] + word, changed)
        else:
            runs.append((word, changed))
    return runs or [("", False)]
