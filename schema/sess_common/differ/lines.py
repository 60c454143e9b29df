"""Line diffs from two texts or from patches in any format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sess_common.differ.common import common
from sess_common.differ.words import DiffLine, Raw, marked

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_FILE = ("*** Update File:", "*** Add File:", "*** Delete File:", "*** Move to:")


def between(
    old: str, new: str, start_old: int = 1, start_new: int = 1, context: int | None = 3
) -> list[DiffLine]:
    """The diff of two texts, with `context` lines around each change; all lines if it is None."""
    before, after = split(old, new)
    raw: list[Raw] = []
    i = j = 0
    for a, b in [*common(before, after), (len(before), len(after))]:
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


def split(old: str, new: str) -> tuple[list[str], list[str]]:
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
