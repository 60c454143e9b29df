"""Screen rows from foreign text: escaped, measured in cells, cut and wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sess_cli.export import ansi
from sess_cli.export.film.frames import Look, Row
from sess_cli.render import layout
from sess_common.escape import safe

DIM = Look("dim")
EMPTY: Row = ()
_LONGEST = 4000  # characters of one line: many screens wide
_TAB = 4
_WORDS = re.compile(r"\s+|\S+")


def harmless(text: str) -> str:
    """Foreign text on one line, with every character visible."""
    return safe(text[:_LONGEST]).replace("\n", " ").expandtabs(_TAB)


def one_line(text: str) -> str:
    """The same, with runs of whitespace as one space."""
    return " ".join(harmless(text).split())


def row(*runs: tuple[str, Look]) -> Row:
    return tuple(run for run in runs if run[0])


def width(line: Row) -> int:
    return sum(layout.cells(text) for text, _ in line)


def large(lines: Iterable[Row]) -> Iterator[Row]:
    """The rows in letters twice as large: each is two rows, the halves of its letters."""
    for line in lines:
        for half in (1, 2):
            yield tuple((text, replace(look, half=half)) for text, look in line)


def half_of(line: Row) -> int:
    return line[0][1].half if line else 0


def breadth(line: Row) -> int:
    """The cells that a row takes on the screen."""
    return width(line) * (2 if half_of(line) else 1)


def led(line: Row, lead: int, room: int) -> Row:
    """A row that begins after `lead` cells."""
    if not line:
        return line
    half = half_of(line)
    scale = 2 if half else 1
    return cut(row((" " * (lead // scale), Look(half=half)), *line), room // scale)


def plain(line: Row) -> str:
    return "".join(text for text, _ in line)


def cut(line: Row, room: int) -> Row:
    """The start of a row that fits, with an ellipsis if something is cut."""
    if width(line) <= room:
        return line
    kept: list[tuple[str, Look]] = []
    left = max(room, 1)
    for text, look in line:
        taken = layout.cells(text)
        if taken < left:
            kept.append((text, look))
            left -= taken
        else:
            # One cell more than fits, so that the ellipsis appears even if the run ends here.
            kept.append((layout.cut(text + " ", left), look))
            break
    return tuple(kept)


def padded(line: Row, room: int, look: Look) -> Row:
    missing = room - width(line)
    return (*line, (" " * missing, look)) if missing > 0 else line


def wrap(line: Row, room: int, indent: Row = EMPTY) -> Iterator[Row]:
    """A row wrapped into rows that fit; `indent` precedes all but the first."""
    if width(line) <= room:
        yield line
        return
    current: list[tuple[str, Look]] = []
    used = start = 0
    for text, look in line:
        for found in _WORDS.finditer(text):
            word = found[0]
            size = layout.cells(word)
            if used + size > room and used > start:
                yield _joined(current)
                current, used = [*indent], width(indent)
                start = used
                if word.isspace():
                    continue
            while used + size > room:
                head = _head(word, room - used)
                yield _joined([*current, (head, look)])
                current, used = [*indent], width(indent)
                start = used
                word = word[len(head) :]
                size = layout.cells(word)
            current.append((word, look))
            used += size
    if used > start:
        yield _joined(current)


def _head(word: str, room: int) -> str:
    """As much of a word as fits, but at least one character, to make progress."""
    return layout.cut(word, room + 1)[:-1] or word[0]


def _joined(runs: Iterable[tuple[str, Look]]) -> Row:
    """Merge neighbouring runs of the same look, so that equal rows compare equal."""
    merged: list[tuple[str, Look]] = []
    for text, look in runs:
        if merged and merged[-1][1] == look:
            merged[-1] = (merged[-1][0] + text, look)
        else:
            merged.append((text, look))
    while merged and merged[-1][1].bg is None:
        text, look = merged.pop()
        if text.rstrip():
            merged.append((text.rstrip(), look))
            break
    return tuple(merged)


def coloured(line: str, usual: Look) -> Row:
    """A line of a terminal's output as the terminal would show it."""
    found = []
    for text, style in ansi.runs(line[:_LONGEST]):
        fg = usual.fg if style.fg is None else style.fg
        look = Look(
            fg, style.bg, style.bold, style.italic, style.dim, style.underline, style.strike,
            style.inverse,
        )  # fmt: skip
        found.append((harmless(text), look))
    return _joined(found)
