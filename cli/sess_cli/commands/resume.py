"""`sess resume`, `handoff`, `history` and `state`: what it takes to continue a session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.commands.export.shared import NoRedact, Output, Redact, RedactionReport
from sess_cli.options import AsJson, NoSync, SessionId

if TYPE_CHECKING:
    import apsw

    from sess_cli.continuing.history import Message
    from sess_cli.continuing.state import State
    from sess_cli.terminal import Terminal
    from sess_schema.queries.sessions import SessionRow


def resume(
    session: SessionId,
    *,
    execute: Annotated[
        bool, typer.Option("--exec", help="Run the command instead of printing it.")
    ] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Print the command that resumes a session in its agent.

    For a subagent, that is the session that started it. To continue with another agent, see
    `sess handoff`.
    """
    from sess_cli import fresh, resuming
    from sess_common.errors import Exit, SessError
    from sess_schema.queries import sessions

    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
        found = resuming.resume(db, row.key)
    if as_json:
        from sess_cli.terminal import json_line

        json_line(
            {
                "session": row.session,
                "agent": row.agent,
                "command": [*found.arguments],
                "directory": found.directory or found.vanished,
                "directory_gone": found.vanished is not None,
                "program": found.program(),
            }
        )
        return
    if found.vanished is not None:
        raise SessError(
            f'the directory of this session no longer exists: "{found.vanished}"',
            hint=f"create it, or try elsewhere: `{found.as_typed()}`",
            code=Exit.NOTHING_FOUND,
        )
    if execute:
        found.replace_this_process()
    from sess_cli.terminal import Terminal

    terminal = Terminal()
    terminal.write(terminal.text(found.as_typed()))


def handoff(
    session: SessionId,
    *,
    max_tokens: Annotated[
        int,
        typer.Option(
            "--max-tokens", min=100, metavar="N", help="Length, at four characters per token."
        ),
    ] = 3000,
    output: Output = None,
    no_redact: NoRedact = False,
    redact: Redact = None,
    redaction_report: RedactionReport = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Write a brief with which another agent can take over.

    In Markdown: goal, decisions, files, commands, open errors, to-dos and where it stands, with
    secrets masked.
    """
    from sess_cli.commands.export import shared
    from sess_cli.continuing import handoff

    redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
    with shared.opened(session, redactor, sync=not no_sync, images=False) as story:
        found = handoff.facts_of(story)
        text = handoff.write(story, found, max_tokens)
        if as_json:
            from dataclasses import asdict

            from sess_cli.terminal import json_line

            about = {"session": story.row.session, "agent": story.row.agent}
            json_line({**about, "project": story.project, **asdict(found), "brief": text})
            return
        raw = text.encode("utf-8", "backslashreplace")
        if output is None or output == "-":
            _print_brief(raw)
            shared.report_masked(redactor)
            return
        from sess_cli.export import files

        with files.new_file(output) as out:
            out.write(raw)
        shared.report(output, redactor)


def _print_brief(raw: bytes) -> None:
    from sess_cli.terminal import Terminal

    terminal = Terminal()
    if terminal.interactive:
        terminal.write(terminal.text(raw.decode()).rstrip())
    else:
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()


class Form(StrEnum):
    """APIs differ in how a message looks."""

    openai = "openai"
    anthropic = "anthropic"


def history(
    session: SessionId,
    *,
    prune: Annotated[
        int | None,
        typer.Option(
            "--prune",
            metavar="N",
            help="Replace outputs before the last N prompts by hints; 0 means 2.",
        ),
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="Whose API --json prints messages for.")
    ] = Form.openai,
    every: Annotated[
        bool, typer.Option("--all", help="Include what the agent has compacted.")
    ] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Print the messages of a session as a model takes them.

    Subagents and thoughts are left out, and every call has its result. Where the agent has
    compacted the conversation, its summary takes the place of what came before.
    """
    from sess_cli import fresh
    from sess_cli.continuing import history
    from sess_common.errors import Exit, SessError
    from sess_schema.queries import sessions
    from sess_schema.session import Reader

    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
        found = history.messages_of(Reader(db, row.key), compacted=not every)
    if prune is not None:
        found = history.pruned(found, prune)
    if not found:
        raise SessError(f'session "{row.session}" has no messages', code=Exit.NOTHING_FOUND)
    if as_json:
        _write_messages(found, form)
        return
    from sess_cli.terminal import pager

    with pager(wanted=True) as terminal:
        for one in found:
            _write_message(terminal, one)


def _write_messages(found: list[Message], form: Form) -> None:
    from sess_cli.terminal import json_line

    if form is Form.anthropic:
        from sess_cli.continuing.history import as_blocks as written
    else:
        from sess_cli.continuing.history import as_chat as written
    for message in written(found):
        json_line(message)


def _write_message(terminal: Terminal, one: Message) -> None:
    from sess_cli.render import amounts

    name = one.call.tool if one.call is not None else ""
    terminal.write(terminal.style(terminal.line(f"{one.role} {name}"), "bold"))
    if one.text:
        terminal.write(terminal.text(one.text))
    if one.images:
        terminal.write(f"[{amounts.plural(len(one.images), 'image')}]")
    for call in one.calls:
        terminal.write(terminal.style(terminal.line(f"→ {call.tool} {call.arguments}"), "cyan"))
    terminal.write("")


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
            from sess_cli.terminal import json_line

            json_line(found.as_object(db, row))
            return
        from sess_cli.terminal import Terminal

        terminal = Terminal()
        for name, text in _facts(db, row, found):
            _write_fact(terminal, name, text, full=full)


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


def _write_fact(terminal: Terminal, name: str, text: str, *, full: bool) -> None:
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
