"""The list of sessions in aligned columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sess_cli.render import amounts, layout
from sess_cli.render.tallies import money
from sess_common import times
from sess_schema import numbers
from sess_schema.marks import Marks
from sess_schema.queries import sessions

if TYPE_CHECKING:
    import apsw

    from sess_cli.terminal import Terminal
    from sess_schema.ids import SessionId
    from sess_schema.numbers import Numbers
    from sess_schema.queries.sessions import Listing, SessionRow

_WIDEST_PROJECT = 28
_LEAST_TITLE, _LEAST_PROJECT = 4, 6
_LEAST_ROOM = 24  # for project and title, before columns at the end go
_ROOM_FOR_COST, _ROOM_FOR_MODEL = 70, 110
_LEFT, _RIGHT = layout.pad, str.rjust


class Chosen(NamedTuple):
    """The sessions to list, and how many match."""

    rows: list[SessionRow]
    numbers: dict[SessionId, Numbers]
    total: int


def chosen(
    db: apsw.Connection, listing: Listing, words: Sequence[str], sort: str, *, reverse: bool
) -> Chosen:
    """The sessions in order; all of them are read only if words or an order need it."""
    if sort == "recent" and not words and not reverse:
        rows = [*listing.rows(db)]
        cut = listing.limit and len(rows) == listing.limit
        return Chosen(rows, numbers.of_many(db, rows), listing.count(db) if cut else len(rows))
    rows = [row for row in replace(listing, limit=0).rows(db) if _has(db, row, words)]
    counted = numbers.of_many(db, rows) if sort in ("cost", "tokens") else {}
    if sort != "recent":
        rows.sort(key=_key(db, sort, counted), reverse=sort not in ("project", "title"))
    shown = (rows[::-1] if reverse else rows)[: listing.limit or None]
    return Chosen(shown, counted or numbers.of_many(db, shown), len(rows))


def _has(db: apsw.Connection, row: SessionRow, words: Sequence[str]) -> bool:
    if not words:
        return True
    text = f"{row.session}\n{row.project or ''}\n{sessions.title_of(db, row)}".lower()
    return all(word.lower() in text for word in words)


def _key(
    db: apsw.Connection, sort: str, counted: dict[SessionId, Numbers]
) -> Callable[[SessionRow], Any]:
    keys: dict[str, Callable[[SessionRow], Any]] = {
        "started": lambda row: row.started or 0,
        "cost": lambda row: counted[row.key].total.cost_nano,
        "tokens": lambda row: counted[row.key].total.tokens,
        "events": lambda row: row.events,
        "duration": lambda row: row.duration_ms,
        "project": lambda row: (row.project or "").lower(),
        "title": lambda row: sessions.title_of(db, row).lower(),
    }
    return keys[sort]


def lines(db: apsw.Connection, terminal: Terminal, listed: Chosen, *, utc: bool) -> Iterator[str]:
    """One line per session, below the names of the columns on a terminal."""
    rows, now = listed.rows, times.now_ms()
    short = sessions.ShortIds(db)
    ids = ["ID", *(terminal.line(short.of(row)) for row in rows)]
    whens = ["ACTIVE", *(amounts.ago(row.ended, now, utc=utc) for row in rows)]
    projects = ["PROJECT", *(_project(terminal, row) for row in rows)]
    marks = Marks(db)
    titles = ["TITLE", *(_title(db, terminal, row, marks) for row in rows)]
    after: list[tuple[list[str], Callable[[str, int], str]]] = []
    if terminal.width is None or terminal.width >= _ROOM_FOR_MODEL:
        after.append((["MODEL", *(terminal.line(_model(row)) for row in rows)], _LEFT))
    if terminal.width is None or terminal.width >= _ROOM_FOR_COST:
        costs = (money(listed.numbers[row.key].total.cost_nano) for row in rows)
        after.append((["COST", *costs], _RIGHT))
    after.append((["EVENTS", *(f"{row.events:,}" for row in rows)], _RIGHT))
    if len(sessions.agents(db)) > 1:
        after.append((["AGENT", *(terminal.line(row.agent) for row in rows)], _LEFT))
    first = 0 if terminal.interactive else 1
    id_width, when_width = _widest(ids[first:]), _widest(whens[first:])
    project_width = min(_widest(projects[first:]), _WIDEST_PROJECT)
    widths = [_widest(column[first:]) for column, _ in after]
    title_width = None
    if terminal.width is not None:
        # Rare long ids take room from their own title rather than widen the column for every line.
        brief = [id_ for id_ in ids if layout.cells(id_) <= terminal.width // 4]
        if len(brief) > 1 + len(rows) // 4 or id_width + _LEAST_TITLE + 2 > terminal.width:
            id_width = _widest(brief)
        room = terminal.width - id_width - when_width - sum(widths) - 2 * (3 + len(after))
        while after and room < _LEAST_ROOM:
            after.pop(0)
            room += widths.pop(0) + 2
        if room < _LEAST_PROJECT + _LEAST_TITLE:  # the ID is there to be copied, whole
            projects, project_width, room = [""] * len(ids), 0, room + 2
        if room < 0:
            whens, room = [""] * len(ids), room + when_width + 2
            when_width = 0
        project_width = min(project_width, max(_LEAST_PROJECT, room // 3))
        title_width = max(0 if not project_width else _LEAST_TITLE, room - project_width)
    for number in range(first, len(ids)):
        title, project = titles[number], projects[number]
        if title_width is not None:
            excess = max(0, layout.cells(ids[number]) - id_width)
            left = max(min(_LEAST_TITLE, title_width), title_width - excess)
            title = layout.pad(layout.cut(title, left), left)
            narrow = max(0, project_width - max(0, excess + left - title_width))
            project = layout.pad(layout.tail_of(project, narrow) if narrow else "", narrow)
        last = [
            align(column[number], width)
            for (column, align), width in zip(after, widths, strict=True)
        ]
        cells = (
            layout.pad(ids[number], id_width),
            whens[number].rjust(when_width),
            layout.pad(project, project_width) if title_width is None else project,
            title,
            "  ".join(last),
        )
        gone = number > 0 and rows[number - 1].source_gone
        styles = ("cyan", "dim", "blue", "dim" if gone else "", "dim") if number else ("dim",) * 5
        yield "  ".join(
            terminal.style(cell, *([style] if style else []))
            for cell, style in zip(cells, styles, strict=True)
            if cell
        ).rstrip()


def _project(terminal: Terminal, row: SessionRow) -> str:
    return terminal.line(layout.home_short(row.project)) if row.project else "-"


def _model(row: SessionRow) -> str:
    """The last one, without what all names have."""
    models = json.loads(row.models)
    name = str(models[-1]).rpartition("/")[2].removeprefix("claude-") if models else "-"
    head, _, date = name.rpartition("-")
    return head if len(date) == 8 and date.isdigit() else name


def _title(db: apsw.Connection, terminal: Terminal, row: SessionRow, marks: Marks) -> str:
    title = terminal.line(marks.around(sessions.title_of(db, row), row.key))
    if row.kind == "subagent":
        return f"↳ {terminal.line(row.agent_type) + ': ' if row.agent_type else ''}{title}"
    return title


def _widest(texts: Sequence[str]) -> int:
    return max(map(layout.cells, texts))
