"""`sess rm`, `prune` and `forget`: delete files of sessions, or sessions from the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, DeletionOptions, DryRun, NoSync, SessionId, Yes, confirmed
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal, json_line
from sess_common import paths
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

if TYPE_CHECKING:
    from sess_cli.edit.log import Edit
    from sess_cli.edit.whole_files import File, Removal

_MOST_FILES, _MOST_SESSIONS = 20, 10  # to list


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
    from sess_cli.edit import running, whole_files

    with fresh.open_with_sessions(whole=True) as db:
        row = sessions.resolve(db, whole_files.checked_id(session))
        removal = whole_files.planned_removal(db, row)
        if not as_json:
            _show_removal(db, removal)
    files = amounts.plural(len(removal.files), "file")
    refused = not (dry_run or yes or confirmed(f"Delete {files}?", "deletes"))
    if refused:
        say("nothing was changed")
    if dry_run or refused:
        if as_json:
            _write_removal(removal, None)
        return
    edit = whole_files.remove_session(removal, force=force)[0]
    for path in removal.files:
        running.wait_until_read(path)
    if as_json:
        _write_removal(removal, edit)
    say(f"deleted {files}; the index keeps the session")
    say(f"undo: sess undo {edit.id}")


def _show_removal(db: apsw.Connection, removal: Removal) -> None:
    terminal, row = Terminal(), removal.session
    terminal.write(terminal.line(f"{row.session}  {row.agent}  {sessions.title_of(db, row)}"))
    for path in removal.files:
        terminal.write("  " + terminal.line(layout.home_short(path)))


def _write_removal(removal: Removal, edit: Edit | None) -> None:
    json_line(
        {
            "session": removal.session.session,
            "agent": removal.session.agent,
            "files": removal.files,
            "done": edit is not None,
            "edit": edit.id if edit else None,
        }
    )


def prune(which: DeletionOptions, *, as_json: AsJson = False) -> None:
    """Delete transcripts that are archived, to free space.

    Each file is compared with the archive first, byte for byte. The sessions stay searchable, and
    `sess restore --in-place` writes a transcript back at any time. Databases are left alone.
    """
    from sess_cli.edit import whole_files

    which.check("prune")
    with fresh.open_with_sessions(whole=True) as db:
        files, shared = whole_files.files_of(db, which.rows(db))
        for path in shared:
            say(f'note: "{path}" also has other sessions, so it stays')
        if not files:
            raise SessError("no transcript to delete", code=Exit.NOTHING_FOUND)
        if not as_json:
            _show_files(files)
        removed: dict[str, int] = {}
        agreed = not which.dry_run and which.agreed(
            f"Delete {amounts.plural(len(files), 'file')}?", "deletes"
        )
        if agreed:
            removed = _delete_files(db, files)
    if as_json:
        for file in files:
            json_line({"path": file.path, "size": file.size, "done": file.path in removed})
    if not agreed:
        return
    say(f"deleted {amounts.plural(len(removed), 'file')}, {amounts.size(sum(removed.values()))}")
    if removed:
        say("undo: sess undo")
    if shared or len(removed) < len(files):
        raise typer.Exit(Exit.SKIPPED_SOME)


def _delete_files(db: apsw.Connection, files: list[File]) -> dict[str, int]:
    """Delete what can be; the paths and sizes of those files."""
    from sess_cli.edit import live, running, whole_files

    group = whole_files.new_group()
    removed = {}
    with live.editing():
        for file in files:
            try:
                whole_files.prune_file(db, file, group)
                removed[file.path] = file.size
            except SessError as error:
                say(f"not deleted: {error.message}")
    for path in removed:
        running.wait_until_read(path)
    return removed


def _show_files(files: list[File]) -> None:
    terminal = Terminal()
    for file in files[:_MOST_FILES]:
        size = amounts.size(file.size)
        terminal.write(terminal.line(f"{size:>9}  {layout.home_short(file.path)}"))
    if len(files) > _MOST_FILES:
        terminal.write(f"and {len(files) - _MOST_FILES:,} more")
    total = amounts.size(sum(file.size for file in files))
    terminal.write(f"{amounts.plural(len(files), 'file')}, {total}")


def forget(which: DeletionOptions, *, no_sync: NoSync = False) -> None:
    """Delete sessions from the index for good.

    Their subagents and archived transcripts go with them. This is the only way anything leaves the
    index. Transcripts that still exist are not touched, and are not read again.
    """
    from sess_common import requests

    which.check("forget")
    with fresh.open_with_sessions(sync=not no_sync, whole=True) as db:
        chosen = which.rows(db)
        if not chosen:
            raise SessError("no session matches", code=Exit.NOTHING_FOUND)
        _show_sessions(db, chosen)
        names, files = _names_and_files(db, chosen)
    if which.dry_run:
        return
    if not which.agreed(f"Forget {counted(len(chosen), 'session')} for good?", "forgets"):
        raise typer.Abort
    done = requests.ask(paths.home(), "forget", sessions=[row.key for row in chosen])
    _discard_snapshots(names, files)
    say(f"forgot {counted(done['sessions'], 'session')}, subagents included")
    for path in done["shared"]:
        say(f'note: "{path}" also has other sessions, so its archived copy stays as it is')
    if done["shared"]:
        raise typer.Exit(Exit.SKIPPED_SOME)


def _names_and_files(db: apsw.Connection, chosen: list[SessionRow]) -> tuple[set[str], set[str]]:
    """IDs and transcripts of the sessions and their subagents."""
    from sess_schema.queries import sources

    keys = {key for row in chosen for key in sessions.family(db, row.key)}
    names = {sessions.by_key(db, key).session for key in keys}
    rows = [row for key in keys for row in sources.of_session(db, key)]
    files = {row.path for row in rows if not row.is_part}
    return names, files


def _discard_snapshots(names: set[str], files: set[str]) -> None:
    """What was kept to undo edits of them goes, too."""
    if (paths.home().data / "edits").is_dir():
        from sess_cli.edit import log

        log.discard(names, files)


def _show_sessions(db: apsw.Connection, chosen: list[SessionRow]) -> None:
    terminal = Terminal()
    for row in chosen[:_MOST_SESSIONS]:
        terminal.write(terminal.line(f"{row.session}  {row.agent}  {row.title or 'untitled'}"))
    if len(chosen) > _MOST_SESSIONS:
        terminal.write(f"and {len(chosen) - _MOST_SESSIONS:,} more")
