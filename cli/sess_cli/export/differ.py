"""Line diffs with the changed words marked, from two texts or from patches of any kind."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

_Raw = tuple[str, int | None, int | None, str]

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_FILE = ("*** Update File:", "*** Add File:", "*** Delete File:", "*** Move to:")
_LARGEST_TABLE = 25_000_000  # bits: 5,000 lines against 5,000 that no unique line divides
_LARGEST_BLOCK = 400  # replaced lines in a row that are still compared word by word
_MOST_PAIRS = 2_000
_LONGEST_LINE = 2_000  # characters; beyond it only what is common at both ends is looked for
_SIMILAR = 0.5
_MOST_LOOKS = 20  # at each line, on average, for lines that divide; hostile texts nest forever


@dataclass(slots=True)
class DiffLine:
    """`@` stands where lines are left out, or begins a hunk or a file of a patch."""

    sign: str  # " ", "+", "-" or "@"
    old: int | None
    new: int | None
    parts: list[tuple[str, bool]] = field(default_factory=list)  # text, and whether it changed

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.parts)


def between(
    old: str, new: str, start_old: int = 1, start_new: int = 1, context: int | None = 3
) -> list[DiffLine]:
    """What turns one text into the other; without `context` every line, else only those near."""
    before, after = _lines(old, new)
    raw: list[_Raw] = []
    i = j = 0
    for a, b in [*_common(before, after), (len(before), len(after))]:
        raw += [("-", start_old + n, None, before[n]) for n in range(i, a)]
        raw += [("+", None, start_new + n, after[n]) for n in range(j, b)]
        if a < len(before):
            raw.append((" ", start_old + a, start_new + b, before[a]))
        i, j = a + 1, b + 1
    return _marked(raw if context is None else [*_near(raw, max(context, 0))])


def from_hunks(patch: object) -> list[DiffLine]:
    """The agents' structured patches: `oldStart`, `newStart`, `lines`; odd parts are skipped."""
    raw: list[_Raw] = []
    for hunk in patch if isinstance(patch, list) else ():
        if not isinstance(hunk, dict) or not isinstance(hunk.get("lines"), list):
            continue
        lines = [line for line in hunk["lines"] if isinstance(line, str)]
        old, new = _start(hunk.get("oldStart")), _start(hunk.get("newStart"))
        if raw:
            raw.append(("@", old, new, f"@@ -{old} +{new} @@"))
        raw += _numbered(lines, old, new)
    return _marked(raw)


def from_patch(text: str) -> list[DiffLine]:
    """A unified diff, or one between `*** Begin Patch` and `*** End Patch`."""
    if "*** Begin Patch" in text:
        return _marked([*_begun(text.split("\n"))])
    return _marked([*_unified(text.split("\n"))])


# -- lines


def _lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """A newline at the end begins no line, unless the other text lacks it."""
    if (not old or old.endswith("\n")) and (not new or new.endswith("\n")):
        old, new = old.removesuffix("\n"), new.removesuffix("\n")
        return old.split("\n") if old else [], new.split("\n") if new else []
    return old.split("\n") if old else [], new.split("\n") if new else []


def _near(raw: list[_Raw], context: int) -> Iterator[_Raw]:
    """Changes and the lines around them; where lines are left out between, an `@`."""
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


def _numbered(lines: Sequence[str], old: int, new: int) -> Iterator[_Raw]:
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


def _unified(lines: list[str]) -> Iterator[_Raw]:
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
            end = _end(lines, at, old_count, new_count)
            body = _numbered(lines[at:end], old, new)
            yield from body if numbers else (_unnumbered(one) for one in body)
            at = end
        elif line.startswith("--- ") and lines[at : at + 1] and lines[at].startswith("+++ "):
            kept = lines[at] if lines[at] != "+++ /dev/null" else line
            yield "@", None, None, kept[4:].split("\t")[0]
            at += 1
        elif line.startswith(("rename to ", "Binary files ", "deleted file ", "new file ")):
            yield "@", None, None, line


def _end(lines: list[str], at: int, old: int, new: int) -> int:
    """Where a hunk's lines end; the numbers in its head are believed only against a file's head."""
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
    # A text ends with a newline; that is no empty line of context.
    return at - 1 if at == len(lines) and lines[-1] == "" else at


def _begun(lines: list[str]) -> Iterator[_Raw]:
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


def _unnumbered(line: _Raw) -> _Raw:
    return line[0], None, None, line[3]


# -- what two sequences have in common


def _common(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal lines, both rising.

    Lines that occur once on either side divide the texts first: that is quick, and reads better
    than the longest common sequence, which likes to match blank lines and brackets.
    """
    found: list[tuple[int, int]] = []
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
        if a_from == a_to or b_from == b_to:
            continue
        some_a, some_b = a[a_from:a_to], b[b_from:b_to]
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
        elif (a_to - a_from) * (b_to - b_from) <= _LARGEST_TABLE:
            found += [(a_from + i, b_from + j) for i, j in _longest(a[a_from:a_to], b[b_from:b_to])]
    return sorted(found)


def _unique(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """The longest rising run of lines that both sides have exactly once."""
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
    chosen: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def _longest(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """A longest common sequence, a whole row of its table at once in the bits of one integer."""
    places: dict[str, int] = {}
    for j, one in enumerate(b):
        places[one] = places.get(one, 0) | 1 << j
    full = (1 << len(b)) - 1
    row, rows = full, []
    for one in a:
        hit = row & places.get(one, 0)
        row = (row + hit | row - hit) & full
        rows.append(row)
    found: list[tuple[int, int]] = []
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


# -- words


def _marked(raw: list[_Raw]) -> list[DiffLine]:
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
    """Each removed line is compared with the next added one that resembles it."""
    aligned = len(removed) == len(added)
    old, new = [[_Words(line.text) for line in lines] for lines in (removed, added)]
    tried = 0
    after = 0
    for number, line in enumerate(removed):
        others = [number] if aligned else range(after, min(after + 8, len(added)))
        for other in others:
            tried += 1
            marked = _compared(old[number], new[other])
            if marked is not None:
                line.parts, added[other].parts = marked
                after = other + 1
                break
    return tried


class _Words:
    """A line in words; blanks say nothing about how alike two lines are."""

    __slots__ = ("different", "line", "size", "words")

    def __init__(self, line: str) -> None:
        self.line = line
        self.words = _WORDS.findall(line) if len(line) <= _LONGEST_LINE else []
        self.different = set(self.words)
        self.size = len("".join(line.split()))


def _compared(
    old: _Words, new: _Words
) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]] | None:
    """Both lines with their own words marked; None when they have too little in common."""
    if max(len(old.line), len(new.line)) > _LONGEST_LINE:
        return _compared_ends(old.line, new.line)
    least = _SIMILAR * (old.size + new.size)
    shared = old.different & new.different
    # No common sequence is longer; most lines that differ are told apart by this alone.
    if 2 * sum(len(word) for word in old.words if word in shared and not word.isspace()) < least:
        return None
    a, b = old.words, new.words
    pairs = _longest(a, b)
    same = sum(len(a[i]) for i, _ in pairs if not a[i].isspace())
    if 2 * same < least or not same:
        return None
    return _parts(a, {i for i, _ in pairs}), _parts(b, {j for _, j in pairs})


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
    parts = [(line[:head], False), (line[head:end], True), (line[end:], False)]
    return [part for part in parts if part[0]]


def _equal(a: str, b: str) -> int:
    """How many characters at the beginning of two equally long texts are the same."""
    low, high = 0, len(a)
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _parts(words: list[str], same: set[int]) -> list[tuple[str, bool]]:
    """Words put together; blanks between two changed words count as changed."""
    parts: list[tuple[str, bool]] = []
    for number, word in enumerate(words):
        changed = number not in same or (
            word.isspace()
            and 0 < number < len(words) - 1
            and number - 1 not in same
            and number + 1 not in same
        )
        if parts and parts[-1][1] == changed:
            parts[-1] = (parts[-1][0] + word, changed)
        else:
            parts.append((word, changed))
    return parts or [("", False)]
