"""Removed and added lines, of an edit and in a printed diff, on grounds of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sess_cli.export.film import rows
from sess_cli.export.film.frames import Look, Row
from sess_cli.export.story import Item
from sess_common.differ import DiffLine
from sess_schema import edits

_LOOKS = {
    "-": (Look(bg="removed"), Look(bg="removed-word", bold=True)),
    "+": (Look(bg="added"), Look(bg="added-word", bold=True)),
}
_SIGNS = {"-": Look("red", "removed", bold=True), "+": Look("green", "added", bold=True)}
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")


@dataclass(slots=True)
class Diff:
    rows: list[Row]
    hidden: int
    added: int
    removed: int


def diff_rows(item: Item, room: int, most: int) -> Diff:
    """The first lines of an edit, numbered if the agent recorded line numbers."""
    numbered = bool(edits.hunks_of(item.edits))
    lines = [line for line in _lines(item) if line.sign != " "]
    shown = [_filled(_row(line, numbered=numbered), room) for line in lines[:most]]
    added = sum(line.sign == "+" for line in lines)
    removed = sum(line.sign == "-" for line in lines)
    return Diff(shown, max(0, len(lines) - most), added, removed)


def _lines(item: Item) -> list[DiffLine]:
    found: list[DiffLine] = []
    for edit in edits.shown(item.edits):
        if found:
            found.append(DiffLine("@", None, None))
        found += edits.lines(edit, context=0)
    return found


def _row(line: DiffLine, *, numbered: bool) -> Row:
    number = line.new if line.new is not None else line.old
    lead = f"{number:>6} " if numbered and number is not None else "    "
    if line.sign == "@":
        words = "" if line.text.startswith("@@") else rows.one_line(line.text)
        return rows.row((f"    {words}" if words else "", rows.DIM))
    usual, marked = _LOOKS[line.sign]
    pieces = [
        (rows.harmless(text), marked if changed and text.strip() else usual)
        for text, changed in line.runs
    ]
    return rows.row((lead, rows.DIM), (f"{line.sign} ", _SIGNS[line.sign]), *pieces)


def _filled(line: Row, room: int) -> Row:
    """The ground reaches to the end of the row."""
    ground = next((look.bg for _, look in line if look.bg), None)
    shown = rows.cut(line, room)
    return rows.padded(shown, room, Look(bg=ground)) if ground else shown


def printed(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each line of an output, with `+` or `-` if it is a changed line of a printed diff."""
    inside = False
    for line in lines:
        if _HUNK.match(line):
            inside = True
        elif inside and line[:1] not in " +-\\":
            inside = False
        yield line, line[0] if inside and line[:1] in ("+", "-") else ""


def printed_row(line: str, sign: str, room: int) -> Row:
    usual, _ = _LOOKS[sign]
    pieces = rows.row(("  ", Look()), (sign, _SIGNS[sign]), (rows.harmless(line[1:]), usual))
    return _filled(pieces, room)
