"""`sess resume`: continue a session in the agent that wrote it."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli.options import AsJson, NoSync, SessionId


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
        from sess_cli.output import json_line

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
