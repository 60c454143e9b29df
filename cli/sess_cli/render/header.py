"""The header above a session's transcript."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sess_cli.render import amounts, layout
from sess_common import times
from sess_schema import numbers
from sess_schema.queries import sessions, sources

if TYPE_CHECKING:
    import apsw

    from sess_cli.terminal import Terminal
    from sess_schema.numbers import Numbers
    from sess_schema.queries.sessions import SessionRow

_MOST_SUBAGENTS = 6
_PROJECT_FROM = {
    "folder": " (from the name of its folder)",
    "name": " (the name of its folder)",
    "files": " (where its files are)",
}


def header_lines(
    db: apsw.Connection, terminal: Terminal, row: SessionRow, ids: sessions.ShortIds, *, utc: bool
) -> Iterator[str]:
    """One or more lines per fact, the title first."""
    for name, value in _facts(db, terminal, row, ids, utc=utc):
        if not name:
            yield from (terminal.style(line, "bold") for line in _fitting(terminal, value, 0))
            continue
        first = terminal.style(f"{name:<10}", "dim")
        # Paths are not cut, so that they can be copied.
        for line in [value] if name == "source" else _fitting(terminal, value, 10):
            yield first + line
            first = " " * 10


def _fitting(terminal: Terminal, value: str, indent: int) -> Iterator[str]:
    if terminal.width is None:
        yield value
    else:
        yield from layout.wrap(value, terminal.width - indent)


def _facts(
    db: apsw.Connection, terminal: Terminal, row: SessionRow, ids: sessions.ShortIds, *, utc: bool
) -> Iterator[tuple[str, str]]:
    yield "", terminal.line(sessions.title_of(db, row))
    about = f" ({row.kind} of {row.agent})" if row.kind != "main" else f" ({row.agent})"
    yield "session", terminal.line(row.session) + terminal.line(about).join((" ", ""))
    place = terminal.line(layout.home_short(row.project))
    branch = f" on {terminal.line(row.git_branch)}" if row.git_branch else ""
    yield "project", place + branch + _PROJECT_FROM.get(row.project_from or "", "")
    models = ", ".join(json.loads(row.models))
    version = f"version {row.version}" if row.version else ""
    mode = f"{row.mode} mode" if row.mode else ""
    if models or version or mode:
        yield (
            "model" if models else "agent",
            terminal.line(" · ".join(filter(None, (models, version, mode)))),
        )
    counts = numbers.of(db, row)
    yield "when", _when(row, counts, utc=utc)
    yield "counts", _counts(counts)
    for source in sources.of_session(db, row.key):
        gone = ""
        if source.state == "gone":
            day = f"{times.local(source.state_since, utc=utc):%Y-%m-%d}"
            gone = f" (gone since {day}; `sess restore` writes it back)"
        yield "source", terminal.line(layout.home_short(source.path)) + gone
    if row.parent_key is not None:
        parent = sessions.by_key(db, row.parent_key)
        known = sessions.is_read(db, row.parent_key)
        about = sessions.title_of(db, parent) if known else "(its transcript is missing)"
        yield "parent", terminal.line(f"{ids.of(parent)}  {about}")
    children = sessions.children(db, row.key)
    if children:
        shown = ", ".join(ids.of(child) for child in children[:_MOST_SUBAGENTS])
        more = len(children) - _MOST_SUBAGENTS
        yield "subagents", terminal.line(shown) + (f" and {more} more" if more > 0 else "")


def _when(row: SessionRow, counts: Numbers, *, utc: bool) -> str:
    if row.started is None or row.ended is None:
        return "no date"
    when = amounts.period(row.started, row.ended, utc=utc)
    about = "the time of its file" if row.time_from else ""
    about = about or amounts.spans(counts.duration_ms, counts.active_ms)
    return f"{when} ({about})" if about else when


def _counts(counts: Numbers) -> str:
    outcomes = amounts.outcomes(counts.failed, counts.denied)
    return (
        f"{amounts.plural(counts.prompts, 'prompt')}, {amounts.plural(counts.calls, 'tool call')}"
        f"{f' ({outcomes})' if outcomes else ''}, {amounts.plural(counts.events, 'event')}"
    )
