"""`sess forget`: delete sessions from the index for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sess_cli.choosing import Doomed, agreed
from sess_cli.options import NoSync

if TYPE_CHECKING:
    import apsw

    from sess_schema.queries.sessions import SessionRow

_MOST_SHOWN = 10


def forget(
    doomed: Doomed,
    *,
    no_sync: NoSync = False,
) -> None:
    """Delete sessions from the index for good.

    Their subagents and archived transcripts go with them. This is the only way anything leaves the
    index. Transcripts that still exist are not touched, and are not read again.
    """
    from sess_cli import fresh
    from sess_common import paths, requests
    from sess_common.errors import Exit, SessError
    from sess_common.program import counted, say

    doomed.check("forget")
    with fresh.open_with_sessions(sync=not no_sync) as db:
        chosen = doomed.rows(db)
        if not chosen:
            raise SessError("no session matches", code=Exit.NOTHING_FOUND)
        _show(db, chosen)
        kept_of = _names_and_files(db, chosen)
    if doomed.dry_run:
        return
    if not doomed.yes and not agreed(
        f"Forget {counted(len(chosen), 'session')} for good?", "forgets"
    ):
        raise typer.Abort
    told = requests.ask(paths.home(), "forget", sessions=[row.key for row in chosen])
    _discard_snapshots(*kept_of)
    say(f"forgot {counted(told['sessions'], 'session')}, subagents included")
    for path in told["shared"]:
        say(f'note: "{path}" also has other sessions, so its archived copy stays as it is')
    if told["shared"]:
        raise typer.Exit(Exit.SKIPPED_SOME)


def _names_and_files(db: apsw.Connection, chosen: list[SessionRow]) -> tuple[set[str], set[str]]:
    """IDs and transcripts of the sessions and their subagents."""
    from sess_schema.queries import sessions, sources

    keys = {key for row in chosen for key in sessions.family(db, row.key)}
    names = {sessions.by_key(db, key).session for key in keys}
    files = {one.path for key in keys for one in sources.of_session(db, key) if not one.is_part}
    return names, files


def _discard_snapshots(names: set[str], files: set[str]) -> None:
    """What was kept to undo edits of them goes, too."""
    from sess_common import paths

    if (paths.home().data / "edits").is_dir():
        from sess_cli.edit import log

        log.discard(names, files)


def _show(db: apsw.Connection, chosen: list[SessionRow]) -> None:
    from sess_cli.terminal import Terminal

    terminal = Terminal()
    for row in chosen[:_MOST_SHOWN]:
        terminal.write(terminal.line(f"{row.session}  {row.agent}  {row.title or 'untitled'}"))
    if len(chosen) > _MOST_SHOWN:
        terminal.write(f"and {len(chosen) - _MOST_SHOWN:,} more")
