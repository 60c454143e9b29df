"""A view's report, and how to write it: to a terminal, or as JSON, CSV or Markdown.

`export.report.page` draws the charts of its sections.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

import apsw

from sess_cli.render import layout
from sess_cli.terminal import Terminal, csv_text, json_line
from sess_common.classes import dataclass, field
from sess_schema.citations import Citations
from sess_schema.ids import EventId

Form = Callable[[Any], str]
_GAP = 2
_LONGEST_NAME = 40
_WIDEST = 26  # of any other column
_LEAST = 12  # of the column that is cut, whatever the others take
_SHORTEST_ID = 8
_AGENT_PREFIX = "agent-"


@dataclass(slots=True, frozen=True)
class ViewOptions:
    """Options of the views, besides what `Stats` selects."""

    detail: bool = False
    path: str | None = None
    budget: str | None = None
    now: int = 0
    utc: bool = False


@dataclass(slots=True, frozen=True)
class Column:
    key: str
    head: str
    form: Form = str
    left: bool = False
    colour: str = "s0"  # on a page: one of the series s0 to s6, or bad

    @classmethod
    def several(cls, form: Form, **heads: str) -> tuple[Column, ...]:
        """Columns of one form: `key="head"`."""
        return tuple(cls(key, head, form) for key, head in heads.items())


class Amount(NamedTuple):
    """A number that is not shown as such: a cost may be unknown."""

    number: int
    shown: str

    def __str__(self) -> str:
        return self.shown


@dataclass(slots=True, frozen=True)
class Chart:
    """How a page draws a section, and the data below the drawing."""

    kind: str  # a function of `export.report.charts`
    name: str  # unique on the page
    title: str
    about: str
    nothing: str  # what stands in its place if nothing is to be drawn
    columns: Sequence[Column]  # of the data; the first names the row
    drawn: Sequence[str]  # the keys of those in the drawing
    total: Mapping[str, Any] | None = None
    until: date | None = None  # today, of a year
    facts: Sequence[tuple[str, str]] = ()  # beside a year


class Later(Sequence[dict[str, Any]]):
    """Rows that are made when they are read: a terminal shows few of thousands."""

    def __init__(self, items: Sequence[Any], make: Callable[[Any], dict[str, Any]]) -> None:
        self._items, self._make = items, make

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self._make(item) for item in self._items[at]]
        return self._make(self._items[at])


@dataclass(slots=True)
class Section:
    """Rows of one kind; their keys are a public contract.

    Keys that start with `_` are for terminals and pages only.
    """

    kind: str
    rows: Sequence[dict[str, Any]]
    columns: Sequence[Column] = ()  # for the terminal; the first names the row
    most: int = 0  # rows shown on a terminal; 0 for all
    paths: bool = False  # cut the first column at its start
    cut: int = 0  # the column to cut if space is short
    charts: Sequence[Chart] = ()


@dataclass(slots=True)
class Report:
    view: str
    sections: list[Section]
    facts: list[tuple[str, str]] = field(default_factory=list)
    draw: Callable[[Terminal], None] | None = None  # instead of sections
    notes: list[str] = field(default_factory=list)
    code: int = 0  # to exit with


def write(report: Report, form: str | None, terminal: Terminal | None = None) -> None:
    """`form`: json, csv, md, or None for a terminal."""
    if form == "json":
        for kind, row in _rows(report):
            json_line({"view": report.view, "kind": kind, **row})
    elif form == "csv":
        _write_csv(report)
    elif form == "md":
        _write_markdown(report)
    else:
        _write_terminal(report, terminal or Terminal())


def _rows(report: Report) -> list[tuple[str, dict[str, Any]]]:
    return [(section.kind, _public(row)) for section in report.sections for row in section.rows]


def _public(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_")}


def _write_csv(report: Report) -> None:
    """One table for all kinds; cells of other kinds stay empty."""
    import csv
    import sys

    rows = _rows(report)
    names = [*dict.fromkeys(name for _, row in rows for name in row)]
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["kind", *names])
    for kind, row in rows:
        table.writerow([kind, *(_csv_cell(row.get(name)) for name in names)])


def _csv_cell(value: Any) -> str:
    return plain(value) if isinstance(value, int | float) else csv_text(plain(value))


def _write_markdown(report: Report) -> None:
    terminal = Terminal()
    first = True
    for section in report.sections:
        if not section.rows:
            continue
        names = list(_public(section.rows[0]))
        if not first:
            terminal.write("")
        first = False
        terminal.write(f"| {' | '.join([section.kind, *names[1:]])} |")
        rules = (_rule(section, name) for name in names)
        terminal.write(f"|{'|'.join(rules)}|")
        for row in section.rows:
            cells = (markdown_cell(terminal, plain(row.get(name))) for name in names)
            terminal.write(f"| {' | '.join(cells)} |")


def _rule(section: Section, name: str) -> str:
    """Numbers are right-aligned."""
    values = [row.get(name) for row in section.rows]
    numbers = all(value is None or type(value) in (int, float) for value in values)
    return "---:" if numbers and any(value is not None for value in values) else "---"


def markdown_cell(terminal: Terminal, text: str) -> str:
    return terminal.line(text).replace("\\", "\\\\").replace("|", "\\|")


def plain(value: Any) -> str:
    """A value for CSV and Markdown."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return str(value)


def _write_terminal(report: Report, terminal: Terminal) -> None:
    if not report.facts and not any(section.rows for section in report.sections):
        terminal.write(terminal.style("nothing in this period", "dim"))
        return
    if report.facts:
        facts = [
            (layout.cut(terminal.line(name), _LONGEST_NAME), terminal.line(value))
            for name, value in report.facts
        ]
        room = max(layout.cells(name) for name, _ in facts) + 2
        for name, value in facts:
            write_fact(terminal, name, value, room)
    if report.draw is not None:
        report.draw(terminal)
    else:
        for section in report.sections:
            if section.rows and section.columns:
                if report.facts or section is not report.sections[0]:
                    terminal.write("")
                write_section(terminal, section)
    for note in report.notes:
        terminal.write("")
        for line in layout.wrap(terminal.line(note), terminal.width or 100):
            terminal.write(terminal.style(line, "dim"))


def write_fact(terminal: Terminal, name: str, value: str, room: int) -> None:
    """A name and its value, wrapped with a hanging indent."""
    lines = [*layout.wrap(value, (terminal.width or 10_000) - room)] or [""]
    terminal.write(terminal.style(layout.pad(name, room), "dim") + lines[0])
    for line in lines[1:]:
        terminal.write(" " * room + line)


def write_section(terminal: Terminal, section: Section) -> None:
    """A table in which one column takes the remaining width."""
    columns, rows = section.columns, section.rows[: section.most or None]
    cells = [
        ["" if row.get(c.key) is None else terminal.line(c.form(row[c.key])) for c in columns]
        for row in rows
    ]
    heads = [column.head for column in columns]
    widths = [max(layout.cells(row[n]) for row in [heads, *cells]) for n in range(len(columns))]
    if terminal.width is not None:
        widths = [
            min(width, _WIDEST) if n != section.cut else width for n, width in enumerate(widths)
        ]
        others = sum(widths) - widths[section.cut] + _GAP * (len(widths) - 1)
        room = max(_LEAST, terminal.width - others)
        widths[section.cut] = min(widths[section.cut], room)
    terminal.write(terminal.style(_line(heads, columns, widths, paths=False), "dim"))
    for row in cells:
        terminal.write(_line(row, columns, widths, paths=section.paths))
    if len(section.rows) > len(rows):
        terminal.write(terminal.style(f"and {len(section.rows) - len(rows):,} more", "dim"))


def _line(
    cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], *, paths: bool
) -> str:
    parts = []
    for number, (text, column, width) in enumerate(zip(cells, columns, widths, strict=True)):
        shorten = layout.cut_start if paths and number == 0 else layout.cut
        shown = shorten(text, width)
        if column.left or number == 0:
            parts.append(layout.pad(shown, width))
        else:
            parts.append(" " * (width - layout.cells(shown)) + shown)
    return (" " * _GAP).join(parts).rstrip()


class Links:
    """Knows how short each id can be."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._cites = Citations(db)

    def session(self, native_id: str) -> str:
        """The shortest unique prefix of an id, at least eight characters."""
        at = bisect_left(self._ordered, native_id)
        near = self._ordered[max(0, at - 1) : at] + self._ordered[at + 1 : at + 2]
        length = _SHORTEST_ID + (len(_AGENT_PREFIX) if native_id.startswith(_AGENT_PREFIX) else 0)
        while length < len(native_id) and any(id_.startswith(native_id[:length]) for id_ in near):
            length += 1
        return native_id[:length]

    @cached_property
    def _ordered(self) -> list[str]:
        """All ids: those that begin most alike are neighbours."""
        ids = self._db.execute("SELECT DISTINCT native_id FROM sessions WHERE records > 0")
        return sorted(id_ for (id_,) in ids)

    def event(self, native_id: str, event: EventId | None) -> str:
        return self.session(native_id) + (
            f"#{self._cites.short(event)}" if event is not None else ""
        )

    def key(self, event: EventId | None) -> str | None:
        """The full key, for scripts."""
        return None if event is None else self._cites.key(event)
