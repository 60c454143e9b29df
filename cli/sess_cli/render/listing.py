"""The list of sessions in aligned columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sess_cli.render import amounts, layout
from sess_schema import times
from sess_schema.queries import sessions

if TYPE_CHECKING:
    import apsw

    from sess_cli.terminal import Terminal
    from sess_schema.queries.sessions import SessionRow

_WIDEST_PROJECT = 28
_LEAST_TITLE = 4


def lines(
    db: apsw.Connection, terminal: Terminal, rows: Sequence[SessionRow], *, utc: bool
) -> Iterator[str]:
    """One line per session: id, time, project, title, events, and the agent if they differ."""
    if not rows:
        return
    now = times.now_ms()
    short = sessions.ShortIds(db)
    several = len(sessions.agents(db)) > 1
    ids = [terminal.line(short.of(row)) for row in rows]
    whens = [amounts.ago(row.ended, now, utc=utc) for row in rows]
    counts = [f"{row.events:,}" for row in rows]
    agents = [terminal.line(row.agent) if several else "" for row in rows]
    projects = [
        terminal.line(layout.home_short(row.project)) if row.project else "-" for row in rows
    ]
    titles = [_title(db, terminal, row) for row in rows]
    id_width, when_width, count_width, agent_width = map(_widest, (ids, whens, counts, agents))
    project_width = min(_widest(projects), _WIDEST_PROJECT)
    title_width = None
    if terminal.width is not None:
        # Rare long ids take room from their own title rather than widen the column for every line.
        id_width = _widest([one for one in ids if layout.cells(one) <= terminal.width // 4] or [""])
        gaps = 2 * (5 if several else 4)
        room = terminal.width - id_width - when_width - count_width - agent_width - gaps
        project_width = min(project_width, max(6, room // 3))
        title_width = max(_LEAST_TITLE, room - project_width)
    for number, row in enumerate(rows):
        title, project = titles[number], projects[number]
        if title_width is not None:
            excess = max(0, layout.cells(ids[number]) - id_width)
            left = max(_LEAST_TITLE, title_width - excess)
            title = layout.pad(layout.cut(title, left), left)
            project = layout.tail_of(project, project_width)
        cells = [
            terminal.style(layout.pad(ids[number], id_width), "cyan"),
            terminal.style(whens[number].rjust(when_width), "dim"),
            terminal.style(layout.pad(project, project_width), "blue"),
            terminal.style(title, "dim") if row.source_gone else title,
            terminal.style(counts[number].rjust(count_width), "dim"),
        ]
        if several:
            cells.append(terminal.style(agents[number], "dim"))
        yield "  ".join(cells).rstrip()


def _title(db: apsw.Connection, terminal: Terminal, row: SessionRow) -> str:
    title = terminal.line(sessions.title_of(db, row))
    if row.kind == "subagent":
        return f"↳ {terminal.line(row.agent_type) + ': ' if row.agent_type else ''}{title}"
    return title


def _widest(texts: Sequence[str]) -> int:
    return max(map(layout.cells, texts))
