"""Line diffs, for everything that draws or counts what an edit changed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Raw = tuple[str, int | None, int | None, str]  # sign, number before, number after, text
Pairs = list[tuple[int, int]]

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_FILE = ("*** Update File:", "*** Add File:", "*** Delete File:", "*** Move to:")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_LARGEST_BLOCK = 400  # consecutive replaced lines that are still compared word by word
_MOST_PAIRS = 2_000
_LONGEST_LINE = 2_000  # characters; in longer lines only the common ends are found
_SIMILAR = 0.5
_LARGEST_TABLE = 25_000_000  # bits: 5,000 lines against 5,000 with no unique line to split at
_MOST_LOOKS = 20  # per line, on average, for lines to split at; hostile texts nest forever
_MOST_LINES = 200_000  # between the common ends; above this, everything counts as replaced


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


class Counts(NamedTuple):
    added: int
    removed: int


def between(
    old: str, new: str, start_old: int = 1, start_new: int = 1, context: int | None = 3
) -> list[DiffLine]:
    """The diff of two texts, with `context` lines around each change; all lines if it is None."""
    before, after = split_both(old, new)
    raw: list[Raw] = []
    i = j = 0
    for a, b in [*common_pairs(before, after), (len(before), len(after))]:
        raw += [("-", start_old + n, None, before[n]) for n in range(i, a)]
        raw += [("+", None, start_new + n, after[n]) for n in range(j, b)]
        if a < len(before):
            raw.append((" ", start_old + a, start_new + b, before[a]))
        i, j = a + 1, b + 1
    return marked(raw if context is None else [*_near(raw, max(context, 0))])


def from_hunks(hunks: object) -> list[DiffLine]:
    """From structured patches: `oldStart`, `newStart`, `lines`; malformed hunks are skipped."""
    return marked([*lines_of_hunks(hunks)])


def from_patch(text: str) -> list[DiffLine]:
    """A unified diff, or one between `*** Begin Patch` and `*** End Patch`."""
    return marked([*lines_of_patch(text)])


# -- lines without marks


def lines_of_hunks(hunks: object) -> Iterator[Raw]:
    first = True
    for hunk in hunks if isinstance(hunks, (list, tuple)) else ():
        if not isinstance(hunk, dict) or not isinstance(hunk.get("lines"), list):
            continue
        lines = [line for line in hunk["lines"] if isinstance(line, str)]
        old, new = _start(hunk.get("oldStart")), _start(hunk.get("newStart"))
        if not first:
            yield "@", old, new, f"@@ -{old} +{new} @@"
        first = first and not lines
        yield from _numbered(lines, old, new)


def lines_of_patch(text: str) -> Iterator[Raw]:
    lines = text.split("\n")
    return _begun(lines) if "*** Begin Patch" in text else _unified(lines)


def split_both(old: str, new: str) -> tuple[list[str], list[str]]:
    """A final newline starts no line, unless the other text lacks it."""
    if (not old or old.endswith("\n")) and (not new or new.endswith("\n")):
        old, new = old.removesuffix("\n"), new.removesuffix("\n")
        return old.split("\n") if old else [], new.split("\n") if new else []
    return old.split("\n") if old else [], new.split("\n") if new else []


def _near(raw: list[Raw], context: int) -> Iterator[Raw]:
    """Changes and the lines around them; `@` where lines are left out in between."""
    shown = 0
    at = 0
    changes = [n for n, line in enumerate(raw) if line[0] != " "]
    while at < len(changes):
        begin, last = max(changes[at] - context, shown), changes[at]
        while at < len(changes) and changes[at] - last <= 2 * context + 1:
            last = changes[at]
            at += 1
        if shown and begin > shown:
            near = raw[begin : last + 1]
            old = next((line[1] for line in near if line[1] is not None), None)
            new = next((line[2] for line in near if line[2] is not None), None)
            yield "@", old, new, f"@@ -{old or 0} +{new or 0} @@"
        shown = min(last + context + 1, len(raw))
        yield from raw[begin:shown]


def _numbered(lines: Sequence[str], old: int, new: int) -> Iterator[Raw]:
    for line in lines:
        sign, text = line[:1], line[1:]
        if sign == "-":
            yield "-", old, None, text
            old += 1
        elif sign == "+":
            yield "+", None, new, text
            new += 1
        elif sign in (" ", ""):
            yield " ", old, new, text
            old += 1
            new += 1


def _start(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 10**9 else 1


# -- patches


def _unified(lines: list[str]) -> Iterator[Raw]:
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("@@"):
            yield "@", None, None, line
            numbers = _HUNK.match(line)
            old, old_count, new, new_count = (
                [int(n) if n else 1 for n in numbers.groups()] if numbers else (1, 0, 1, 0)
            )
            end = _hunk_end(lines, at, old_count, new_count)
            body = _numbered(lines[at:end], old, new)
            yield from body if numbers else (_unnumbered(one) for one in body)
            at = end
        elif line.startswith("--- ") and lines[at : at + 1] and lines[at].startswith("+++ "):
            kept = lines[at] if lines[at] != "+++ /dev/null" else line
            yield "@", None, None, kept[4:].split("\t")[0]
            at += 1
        elif line.startswith(("rename to ", "Binary files ", "deleted file ", "new file ")):
            yield "@", None, None, line


def _hunk_end(lines: list[str], at: int, old: int, new: int) -> int:
    """Where a hunk ends; its header's counts only decide whether `---` starts the next file."""
    while at < len(lines):
        line = lines[at]
        if line[:1] not in (" ", "+", "-", "\\", ""):
            break
        if old <= 0 and new <= 0:
            next_file = line.startswith("--- ") and lines[at + 1 : at + 2] != []
            if next_file and lines[at + 1].startswith("+++ "):
                break
            if not line:
                break
        old -= line[:1] in ("-", " ", "")
        new -= line[:1] in ("+", " ", "")
        at += 1
    # The text's final newline is not an empty context line.
    return at - 1 if at == len(lines) and lines[-1] == "" else at


def _begun(lines: list[str]) -> Iterator[Raw]:
    inside = False
    for line in lines:
        if line.startswith("*** Begin Patch"):
            inside = True
        elif line.startswith("*** End Patch"):
            inside = False
        elif inside and line.startswith(_FILE):
            yield "@", None, None, line.removeprefix("*** ")
        elif inside and line.startswith("@@"):
            yield "@", None, None, line
        elif inside and not line.startswith("***"):
            yield from map(_unnumbered, _numbered([line], 1, 1))


def _unnumbered(line: Raw) -> Raw:
    return line[0], None, None, line[3]


# -- changed words


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
    pairs = longest_common(a, b)
    same = sum(len(a[i]) for i, _ in pairs if not a[i].isspace())
    if 2 * same < least or not same:
        return None
    return _word_runs(a, {i for i, _ in pairs}), _word_runs(b, {j for _, j in pairs})


def _compared_ends(
    old: str, new: str
) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]] | None:
    shorter = min(len(old), len(new))
    head = _equal(old[:shorter], new[:shorter])
    rest = shorter - head
    tail = _equal(old[len(old) - rest :][::-1], new[len(new) - rest :][::-1])
    if 2 * (head + tail) < _SIMILAR * (len(old) + len(new)):
        return None
    return _common_ends(old, head, tail), _common_ends(new, head, tail)


def _common_ends(line: str, head: int, tail: int) -> list[tuple[str, bool]]:
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


def _word_runs(words: list[str], same: set[int]) -> list[tuple[str, bool]]:
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


# -- counts: the same as the drawn diff, without drawing it


def count_between(old: str, new: str) -> Counts:
    if old == new:
        return Counts(0, 0)
    before, after = split_both(old, new)
    same = count_common(before, after) if before and after else 0
    return Counts(len(after) - same, len(before) - same)


def count_hunks(hunks: Iterable[dict[str, Any]]) -> Counts:
    signs = [line[:1] for hunk in hunks for line in hunk.get("lines", ())]
    return Counts(signs.count("+"), signs.count("-"))


def count_patch(text: str) -> Counts:
    signs = [sign for sign, *_ in lines_of_patch(text)]
    return Counts(signs.count("+"), signs.count("-"))


# -- what two sequences of lines or words have in common


def common_pairs(a: Sequence[str], b: Sequence[str]) -> Pairs:
    """Pairs of equal lines, ascending on both sides.

    The texts are first split at lines that occur once on each side: this is fast, and reads better
    than the longest common subsequence, which tends to match blank lines and brackets.
    """
    pairs, undivided = _divided(a, b)
    for a_from, a_to, b_from, b_to in undivided:
        pairs += [
            (a_from + i, b_from + j) for i, j in longest_common(a[a_from:a_to], b[b_from:b_to])
        ]
    return sorted(pairs)


def count_common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many pairs `common` finds, at lower cost."""
    pairs, undivided = _divided(a, b)
    return len(pairs) + sum(
        _longest_length(a[a_from:a_to], b[b_from:b_to]) for a_from, a_to, b_from, b_to in undivided
    )


def _divided(a: Sequence[str], b: Sequence[str]) -> tuple[Pairs, list[tuple[int, int, int, int]]]:
    """Pairs of lines that split both texts, and the ranges between that still share lines."""
    pairs: Pairs = []
    undivided: list[tuple[int, int, int, int]] = []
    waiting = [(0, len(a), 0, len(b))]
    looked = 0
    while waiting:
        a_from, a_to, b_from, b_to = waiting.pop()
        while a_from < a_to and b_from < b_to and a[a_from] == b[b_from]:
            pairs.append((a_from, b_from))
            a_from, b_from = a_from + 1, b_from + 1
        while a_from < a_to and b_from < b_to and a[a_to - 1] == b[b_to - 1]:
            a_to, b_to = a_to - 1, b_to - 1
            pairs.append((a_to, b_to))
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
            pairs += anchors
            for i, j in [*anchors, (a_to, b_to)]:
                if a_from < i and b_from < j:
                    waiting.append((a_from, i, b_from, j))
                a_from, b_from = i + 1, j + 1
        elif len(some_a) * len(some_b) <= _LARGEST_TABLE:
            undivided.append((a_from, a_to, b_from, b_to))
    return pairs, undivided


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


def longest_common(a: Sequence[str], b: Sequence[str]) -> Pairs:
    """A longest common subsequence; each row of the table is one integer, a bit per cell."""
    rows = _table(a, b)
    pairs: Pairs = []
    i, j = len(a), len(b)
    while i and j:
        if rows[i - 1] >> j - 1 & 1:
            j -= 1
            continue
        i -= 1
        if not i or rows[i - 1] >> j - 1 & 1:
            j -= 1
            pairs.append((i, j))
    return pairs[::-1]


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
