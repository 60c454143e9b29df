"""An edit as a few coloured lines: removed and added."""

from __future__ import annotations

from dataclasses import dataclass

from sess_cli.export.film import rows
from sess_cli.export.film.frames import Look, Row
from sess_cli.export.story import Item
from sess_schema import edits
from sess_schema.differ import DiffLine

_LOOKS = {
    "-": (Look("red"), Look("red", bold=True, underline=True)),
    "+": (Look("green"), Look("green", bold=True, underline=True)),
}


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
    shown = [rows.cut(_row(line, numbered=numbered), room) for line in lines[:most]]
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
    return rows.row((lead, rows.DIM), (f"{line.sign} ", usual), *pieces)
