"""`sess state`: where a session stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson, NoSync, SessionId

if TYPE_CHECKING:
    import apsw

    from sess_cli.continuing.state import State
    from sess_cli.terminal import Terminal
    from sess_schema.queries.sessions import SessionRow

_MOST_LINES = 12
_BOXES = {"done": "[x]", "doing": "[>]", "open": "[ ]"}


def state(
    session: SessionId,
    *,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten long texts.")] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Show where a session stands: plan, to-dos, mode, model."""
    from sess_cli import fresh
    from sess_cli.continuing.state import read
    from sess_schema.queries import sessions

    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
        found = read(db, row)
        if as_json:
            from sess_cli.output import json_line

            json_line(found.as_object(db, row))
            return
        from sess_cli.terminal import Terminal

        terminal = Terminal()
        for name, text in _facts(db, row, found):
            _write(terminal, name, text, full=full)


def _facts(db: apsw.Connection, row: SessionRow, found: State) -> Iterator[tuple[str, str]]:
    from sess_cli.render import layout
    from sess_schema.queries import sessions

    yield "title", sessions.title_of(db, row)
    yield "session", f"{row.session} ({row.agent})"
    branch = f" on {row.git_branch}" if row.git_branch else ""
    yield "project", layout.home_short(row.project) + branch
    yield "model", found.model or ""
    yield "mode", found.mode or ""
    yield "where", found.environment if found.environment != "local" else ""
    yield "as", found.profile or ""
    yield "goal", found.goal or ""
    if found.plan is not None:
        plan = found.plan
        head = " ".join(filter(None, (plan.title, f"({plan.status})" if plan.status else "")))
        feedback = f"feedback: {plan.feedback}" if plan.feedback else ""
        yield "plan", "\n".join(filter(None, (head, plan.content, feedback)))
    lines = (f"{_BOXES[todo.state]} {todo.text}" for todo in found.todos.all)
    yield "to-dos", "\n".join(lines)
    yield "compacted", _times(found.compactions) + (f"\n{found.summary}" if found.summary else "")
    waiting = (f"{one['tool'] or 'unknown'} {one['summary'] or ''}" for one in found.pending)
    yield "pending", "\n".join(waiting)
    yield "asked", found.last_prompt or ""
    yield "answered", found.last_answer or ""
    yield "prompt", found.system_prompt or ""
    yield "env", found.env_info or ""


def _times(count: int) -> str:
    return "" if count == 0 else "once" if count == 1 else f"{count} times"


def _write(terminal: Terminal, name: str, text: str, *, full: bool) -> None:
    from sess_cli.render import layout

    if not text.strip():
        return
    lines = [
        part
        for line in terminal.text(text.strip()).splitlines()
        for part in (layout.wrap(line, terminal.width - 10) if terminal.width else [line])
    ]
    if not full and len(lines) > _MOST_LINES and name != "to-dos":
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES:,} more lines (--full)"]
    first = terminal.style(f"{name:<10}", "dim")
    for line in lines:
        terminal.write((first + line).rstrip())
        first = " " * 10
