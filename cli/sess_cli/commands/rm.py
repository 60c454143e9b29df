"""`sess rm`: delete the files of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.choosing import agreed
from sess_cli.options import AsJson, DryRun, SessionId, Yes

if TYPE_CHECKING:
    import apsw

    from sess_cli.edit.log import Edit
    from sess_cli.edit.removing import Removal


def rm(
    session: SessionId,
    *,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Annotated[
        bool, typer.Option("--force", help="Even soon after the agent has written.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the files of a session; the index keeps it.

    Transcripts of its subagents and saved outputs go with it. The agent then no longer knows the
    session. `sess undo` brings the files back; `sess forget` removes a session from the index.
    """
    from sess_cli import fresh
    from sess_cli.edit import following, removing
    from sess_cli.edit.ids import checked
    from sess_cli.render import amounts
    from sess_common.program import say
    from sess_schema.queries import sessions

    with fresh.open_with_sessions() as db:
        removal = removing.planned(db, sessions.resolve(db, checked(session)))
        if not as_json:
            _show(db, removal)
    question = f"Delete {amounts.plural(len(removal.files), 'file')}?"
    refused = not (dry_run or yes or agreed(question, "deletes"))
    if refused:
        say("nothing was changed")
    if dry_run or refused:
        if as_json:
            _write_json(removal, None)
        return
    done = removing.perform(removal, force=force)
    for path in removal.files:
        following.after_edit(path)
    if as_json:
        _write_json(removal, done[0])
    say(f"deleted {amounts.plural(len(removal.files), 'file')}; the index keeps the session")
    say(f"undo: sess undo {done[0].id}")


def _show(db: apsw.Connection, removal: Removal) -> None:
    from sess_cli.render import layout
    from sess_cli.terminal import Terminal
    from sess_schema.queries import sessions

    terminal, row = Terminal(), removal.session
    terminal.write(terminal.line(f"{row.session}  {row.agent}  {sessions.title_of(db, row)}"))
    for path in removal.files:
        terminal.write("  " + terminal.line(layout.home_short(path)))


def _write_json(removal: Removal, done: Edit | None) -> None:
    from sess_cli.output import json_line

    json_line(
        {
            "session": removal.session.session,
            "agent": removal.session.agent,
            "files": removal.files,
            "done": done is not None,
            "edit": done.id if done else None,
        }
    )
