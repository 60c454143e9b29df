"""`sess why`: the edit that wrote a line, and the prompt that asked for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync, Utc
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal, json_line
from sess_common import times
from sess_common.errors import Exit, SessError
from sess_common.program import Ended, counted, say
from sess_schema.queries import sessions

if TYPE_CHECKING:
    import apsw

    from sess_cli.blame import File, Line
    from sess_schema.queries.origins import Origin, Reason, Reasons

_PLACE = re.compile(r"(.+?):(\d{1,9})(?:[-,:](\d{1,9}))?")
_MOST_TEXT = 600  # characters of a prompt or of words on a terminal
_HEX = 10  # digits of a commit


def why(
    place: Annotated[
        str, typer.Argument(metavar="FILE[:LINE[-LINE]]", help="A file, or some of its lines.")
    ],
    *,
    utc: Utc = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Show which session wrote a line of a file, and what was asked.

    Works from the edits that agents recorded, after their transcripts were deleted, too. Lines are
    followed through renames, moves, squashed commits and formatters; where that leaves a doubt, it
    is said. Reads git's history where there is one, and the notes of git-ai and Agent Trace.

    \b
    sess why src/retry.py:12
    """
    from sess_cli import blame
    from sess_schema.queries import origins

    name, first, last = _asked(place)
    file = blame.File.read(name)
    if first > len(file.lines):
        raise SessError(
            f"{name} has {counted(len(file.lines), 'line')}: no line {first}",
            code=Exit.NOTHING_FOUND,
        )
    with fresh.open_with_sessions(sync=not no_sync) as db:
        lines = blame.origins_of(db, file)[max(first, 1) - 1 : last or None]
        reasons = origins.Reasons(db)
        if as_json:
            for line in lines:
                json_line(_object(db, file, line, reasons))
        elif first and len(lines) == 1:
            _show_line(db, file, lines[0], reasons, utc=utc)
        else:
            _show_file(db, lines, reasons, utc=utc)
    if not any(line.origin or line.noted for line in lines):
        where = name
        if first:
            where = f"{f'line {first}' if first == last else f'lines {first} to {last}'} of {name}"
        say(f"no recorded session wrote {where}")
        raise Ended(Exit.NOTHING_FOUND)


def _asked(place: str) -> tuple[str, int, int]:
    """The file with the first and the last line; 0 is the whole file."""
    from pathlib import Path

    match = _PLACE.fullmatch(place)
    if match is None or Path(place).expanduser().exists():
        return place, 0, 0
    first, last = int(match[2]), int(match[3] or match[2])
    if not 0 < first <= last:
        raise SessError(f'no such lines: "{place}"', hint="lines are numbered from 1: FILE:12-20")
    return match[1], first, last


def _object(db: apsw.Connection, file: File, line: Line, reasons: Reasons) -> dict[str, Any]:
    """One line for --json."""
    origin, commit = line.origin, line.commit
    reason = reasons.of(origin.change) if origin else None
    return {
        "file": file.name,
        "line": line.number,
        "text": line.text,
        "session": reason.row.session if reason else None,
        "event": reason.event if reason else None,
        "agent": reason.row.agent if reason else None,
        "project": reason.row.project if reason else None,
        "ts": times.iso(origin.change.ts) if origin else None,
        "tool": origin.change.tool if origin else None,
        "certainty": origin.certainty if origin else None,
        "doubt": origin.doubt if origin else None,
        "asked_in": reason.asked_in if reason else None,
        "prompt_event": reason.prompt_event if reason else None,
        "prompt": reason.prompt if reason else None,
        "said": reason.said if reason else None,
        "commit": commit.sha if commit else None,
        "committed": times.iso(commit.committed) if commit else None,
        "author": commit.author if commit else None,
        "subject": commit.subject if commit else None,
        "noted": line.noted._asdict() if line.noted else None,
    }


def _show_line(db: apsw.Connection, file: File, line: Line, reasons: Reasons, *, utc: bool) -> None:
    terminal = Terminal()
    width = terminal.width or 100
    bold = terminal.style(f"{terminal.line(file.name)}:{line.number}", "bold")
    terminal.write(f"{bold}  {terminal.line(line.text)}")
    rows: list[tuple[str, str]] = []
    if line.origin is not None:
        rows += _of_origin(terminal, line.origin, reasons.of(line.origin.change), utc=utc)
    if line.noted is not None:
        names = " ".join(filter(None, [line.noted.agent, line.noted.session]))
        rows.append((line.noted.source, terminal.line(names)))
    if line.commit is not None:
        when = amounts.clock(line.commit.committed, utc=utc)
        text = f"{line.commit.sha[:_HEX]} {line.commit.subject} ({line.commit.author}, {when})"
        rows.append(("commit", terminal.line(text)))
    elif file.root is not None:
        rows.append(("commit", "not committed yet"))
    for name, text in rows:
        wrapped = [*layout.wrap(text, width - 10)] if terminal.interactive else [text]
        for number, part in enumerate(wrapped):
            head = name if number == 0 else ""
            terminal.write(f"{terminal.style(layout.pad(head, 8), 'dim')}  {part}".rstrip())


def _of_origin(
    terminal: Terminal, origin: Origin, reason: Reason, *, utc: bool
) -> Iterator[tuple[str, str]]:
    change = origin.change
    sure = "" if origin.certainty == "exact" else f" ({origin.certainty})"
    call = f"{change.tool or 'edit'} by {reason.row.agent}, {amounts.clock(change.ts, utc=utc)}"
    yield "wrote", terminal.line(f"{call}{sure} {reason.citation}")
    if origin.doubt:
        yield "doubt", origin.doubt
    if reason.prompt:
        yield "asked", terminal.line(sessions.cut(reason.prompt, _MOST_TEXT))
        yield "", f"{reason.asked_in}#{reason.prompt_event}"
    if reason.said:
        yield "said", terminal.line(sessions.cut(reason.said, _MOST_TEXT))


def _show_file(db: apsw.Connection, lines: list[Line], reasons: Reasons, *, utc: bool) -> None:
    """One row for lines that follow each other and were written by the same edit."""
    terminal = Terminal()
    table: list[list[str]] = [["LINES", "WHEN", "WHO", "EVENT", "ASKED"]]
    for _, group in groupby(lines, _writer):
        run = [*group]
        first, last = run[0].number, run[-1].number
        numbers = str(first) if first == last else f"{first}-{last}"
        origin, commit = run[0].origin, run[0].commit
        if origin is not None:
            reason = reasons.of(origin.change)
            when = amounts.clock(origin.change.ts, utc=utc)
            doubt = "? " if any(line.origin and line.origin.doubt for line in run) else ""
            prompt = doubt + (reason.prompt or "")
            table.append([numbers, when, reason.row.agent, reason.citation, prompt])
        elif run[0].noted is not None:
            noted = run[0].noted
            table.append([numbers, "", noted.agent or "", noted.session or "", noted.source])
        else:
            when = amounts.clock(commit.committed, utc=utc) if commit else ""
            author = commit.author if commit else "nobody recorded"
            sha = commit.sha[:_HEX] if commit else ""
            table.append([numbers, when, author, sha, commit.subject if commit else ""])
    _write_table(terminal, [[terminal.line(cell) for cell in row] for row in table])


def _writer(line: Line) -> object:
    if line.origin is not None:
        return line.origin.change.event
    return line.noted or line.commit


def _write_table(terminal: Terminal, table: list[list[str]]) -> None:
    first = 0 if terminal.interactive else 1
    widths = [max(map(layout.cells, column)) for column in zip(*table[first:], strict=True)]
    widths[2] = min(widths[2], 16)
    for number, row in enumerate(table[first:]):
        cells = [
            layout.pad(layout.cut(cell, width), width)
            for cell, width in zip(row, widths, strict=True)
        ]
        cells[0] = row[0].rjust(widths[0])
        line = "  ".join(cells)
        if terminal.width is not None:
            line = layout.cut(line.rstrip(), terminal.width)
        title = number == 0 and first == 0
        terminal.write(terminal.style(line.rstrip(), "bold") if title else line.rstrip())
