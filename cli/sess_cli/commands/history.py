"""`sess history`: the messages of a session, ready for a model."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson, NoSync, SessionId

if TYPE_CHECKING:
    from sess_cli.continuing.messages import Message
    from sess_cli.terminal import Terminal


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
    from sess_cli.continuing import messages, pruning
    from sess_common.errors import Exit, SessError
    from sess_schema.queries import sessions
    from sess_schema.session.reader import Reader

    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
        found = messages.of_session(Reader(db, row.key), compacted=not every)
    if prune is not None:
        found = pruning.pruned(found, prune)
    if not found:
        raise SessError(f'session "{row.session}" has no messages', code=Exit.NOTHING_FOUND)
    if as_json:
        _write_json(found, form)
        return
    from sess_cli.paging import pager

    with pager(wanted=True) as terminal:
        for one in found:
            _write(terminal, one)


def _write_json(found: list[Message], form: Form) -> None:
    from sess_cli.output import json_line

    if form is Form.anthropic:
        from sess_cli.continuing.blocks import as_blocks as written
    else:
        from sess_cli.continuing.messages import as_chat as written
    for message in written(found):
        json_line(message)


def _write(terminal: Terminal, one: Message) -> None:
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
