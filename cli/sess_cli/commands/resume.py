"""`sess resume`, `handoff`, `history` and `state`: what it takes to continue a session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, Force, Masks, NoSync, Output, SessionId
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal, json_line, pager
from sess_common.errors import Exit, SessError
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

if TYPE_CHECKING:
    from sess_cli.continuing.history import Message
    from sess_cli.continuing.state import State

_MOST_LINES = 12  # of a fact
_BOXES = {"done": "[x]", "doing": "[>]", "open": "[ ]"}


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
    from sess_cli import resuming

    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
        command = resuming.resume(db, row.key)
    if as_json:
        json_line(
            {
                "session": row.session,
                "agent": row.agent,
                "command": [*command.arguments],
                "directory": command.directory or command.vanished,
                "directory_gone": command.vanished is not None,
                "program": command.program(),
            }
        )
        return
    if command.vanished is not None:
        raise SessError(
            f'the directory of this session no longer exists: "{command.vanished}"',
            hint=f"create it, or try elsewhere: `{command.as_typed()}`",
            code=Exit.NOTHING_FOUND,
        )
    if execute:
        command.replace_this_process()
    terminal = Terminal()
    terminal.write(terminal.text(command.as_typed()))


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
    force: Force = False,
    masks: Masks,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Write a brief with which another agent can take over.

    In Markdown: goal, decisions, files, commands, open errors, to-dos and where it stands, with
    secrets masked.
    """
    from sess_cli.commands.export import shared  # none of the others needs it
    from sess_cli.continuing import handoff

    redactor = masks.redactor
    with shared.opened(session, redactor, sync=not no_sync, images=False) as story:
        facts = handoff.facts_of(story)
        text = handoff.write(story, facts, max_tokens)
        if as_json:
            from dataclasses import asdict

            about = {"session": story.row.session, "agent": story.row.agent}
            json_line({**about, "project": story.project, **asdict(facts), "brief": text})
            return
        raw = text.encode("utf-8", "backslashreplace")
        if output is None or output == "-":
            _print_brief(raw)
            shared.report_masked(redactor)
            return
        from sess_schema import outputs

        with outputs.new_file(output, replace=force) as out:
            out.write(raw)
        shared.report(output, redactor)


def _print_brief(raw: bytes) -> None:
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
    masks: Masks,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Print the messages of a session as a model takes them.

    Subagents and thoughts are left out, and every call has its result. Where the agent has
    compacted the conversation, its summary takes the place of what came before. Secrets are
    masked; paths stay as they are.
    """
    from sess_cli.commands.export import shared
    from sess_cli.continuing import history
    from sess_cli.export.learning import learn
    from sess_schema.session import Reader

    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
        messages = history.messages_of(Reader(db, row.key), compacted=not every)
        if (redactor := masks.of(home="")) is not None:
            learn(db, [row], redactor)
            messages = [*history.masked(messages, redactor)]
    if prune is not None:
        messages = history.pruned(messages, prune)
    if not messages:
        raise SessError(f'session "{row.session}" has no messages', code=Exit.NOTHING_FOUND)
    shared.report_masked(redactor)
    if as_json:
        as_api = history.as_blocks if form is Form.anthropic else history.as_chat
        for value in as_api(messages):
            json_line(value)
        return
    with pager() as terminal:
        for message in messages:
            _write_message(terminal, message)


def _write_message(terminal: Terminal, message: Message) -> None:
    name = message.call.tool if message.call is not None else ""
    terminal.write(terminal.style(terminal.line(f"{message.role} {name}"), "bold"))
    if message.text:
        terminal.write(terminal.text(message.text))
    if message.images:
        terminal.write(f"[{amounts.plural(len(message.images), 'image')}]")
    for call in message.calls:
        terminal.write(terminal.style(terminal.line(f"→ {call.tool} {call.arguments}"), "cyan"))
    terminal.write("")


def state(
    session: SessionId,
    *,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten long texts.")] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Show where a session stands: plan, to-dos, mode, model."""
    from sess_cli.continuing.state import read

    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
        standing = read(db, row)
        if as_json:
            json_line(standing.as_object(db, row))
            return
        terminal = Terminal()
        for name, text in _facts(db, row, standing):
            _write_fact(terminal, name, text, full=full)


def _facts(db: apsw.Connection, row: SessionRow, standing: State) -> Iterator[tuple[str, str]]:
    yield "title", sessions.title_of(db, row)
    yield "session", f"{row.session} ({row.agent})"
    branch = f" on {row.git_branch}" if row.git_branch else ""
    yield "project", layout.home_short(row.project) + branch
    yield "model", standing.model or ""
    yield "mode", standing.mode or ""
    yield "where", standing.environment if standing.environment != "local" else ""
    yield "as", standing.profile or ""
    yield "goal", standing.goal or ""
    if standing.plan is not None:
        plan = standing.plan
        head = " ".join(filter(None, (plan.title, f"({plan.status})" if plan.status else "")))
        feedback = f"feedback: {plan.feedback}" if plan.feedback else ""
        yield "plan", "\n".join(filter(None, (head, plan.content, feedback)))
    lines = (f"{_BOXES[todo.state]} {todo.text}" for todo in standing.todos.all)
    yield "to-dos", "\n".join(lines)
    yield (
        "compacted",
        _times(standing.compactions) + (f"\n{standing.summary}" if standing.summary else ""),
    )
    if standing.broken:
        lines_ = ", ".join(map(str, standing.broken))
        yield "unread", f"line {lines_} cannot be read: what it changed is not known"
    waiting = (f"{one['tool'] or 'unknown'} {one['summary'] or ''}" for one in standing.pending)
    yield "pending", "\n".join(waiting)
    yield "asked", standing.last_prompt or ""
    yield "answered", standing.last_answer or ""
    yield "prompt", standing.system_prompt or ""
    yield "env", standing.env_info or ""


def _times(count: int) -> str:
    return "" if count == 0 else "once" if count == 1 else f"{count} times"


def _write_fact(terminal: Terminal, name: str, text: str, *, full: bool) -> None:
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
