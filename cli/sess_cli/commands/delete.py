"""`sess rm`, `prune` and `forget`: delete files of sessions, or sessions from the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson, DeletionOptions, DryRun, NoSync, SessionId, Yes, confirmed

if TYPE_CHECKING:
    import apsw

    from sess_cli.edit.log import Edit
    from sess_cli.edit.whole_files import File, Removal
    from sess_schema.queries.sessions import SessionRow


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
    from sess_cli.edit import running, whole_files
    from sess_cli.edit.whole_files import checked_id
    from sess_cli.render import amounts
    from sess_common.program import say
    from sess_schema.queries import sessions

    with fresh.open_with_sessions() as db:
        removal = whole_files.planned_removal(db, sessions.resolve(db, checked_id(session)))
        if not as_json:
            _show_removal(db, removal)
    question = f"Delete {amounts.plural(len(removal.files), 'file')}?"
    refused = not (dry_run or yes or confirmed(question, "deletes"))
    if refused:
        say("nothing was changed")
    if dry_run or refused:
        if as_json:
            _write_removal(removal, None)
        return
    done = whole_files.remove_session(removal, force=force)
    for path in removal.files:
        running.wait_until_read(path)
    if as_json:
        _write_removal(removal, done[0])
    say(f"deleted {amounts.plural(len(removal.files), 'file')}; the index keeps the session")
    say(f"undo: sess undo {done[0].id}")


def _show_removal(db: apsw.Connection, removal: Removal) -> None:
    from sess_cli.render import layout
    from sess_cli.terminal import Terminal
    from sess_schema.queries import sessions

    terminal, row = Terminal(), removal.session
    terminal.write(terminal.line(f"{row.session}  {row.agent}  {sessions.title_of(db, row)}"))
    for path in removal.files:
        terminal.write("  " + terminal.line(layout.home_short(path)))


def _write_removal(removal: Removal, done: Edit | None) -> None:
    from sess_cli.terminal import json_line

    json_line(
        {
            "session": removal.session.session,
            "agent": removal.session.agent,
            "files": removal.files,
            "done": done is not None,
            "edit": done.id if done else None,
        }
    )


_MOST_FILES = 20


def prune(doomed: DeletionOptions) -> None:
    """Delete transcripts that are archived, to free space.

    Each file is compared with the archive first, byte for byte. The sessions stay searchable, and
    `sess restore --in-place` writes a transcript back at any time. Databases are left alone.
    """
    from sess_cli import fresh
    from sess_cli.edit import whole_files
    from sess_cli.render import amounts
    from sess_common.errors import Exit, SessError
    from sess_common.program import say

    doomed.check("prune")
    with fresh.open_with_sessions() as db:
        chosen = doomed.rows(db)
        files, shared = whole_files.files_of(db, chosen)
        for path in shared:
            say(f'note: "{path}" also has other sessions, so it stays')
        if not files:
            raise SessError("no transcript to delete", code=Exit.NOTHING_FOUND)
        _show_files(files)
        if doomed.dry_run:
            return
        if not doomed.yes and not confirmed(
            f"Delete {amounts.plural(len(files), 'file')}?", "deletes"
        ):
            raise typer.Exit
        removed = _delete_files(db, files)
    say(f"deleted {amounts.plural(len(removed), 'file')}, {amounts.size(sum(removed))}")
    if removed:
        say("undo: sess undo")
    if shared or len(removed) < len(files):
        raise typer.Exit(Exit.SKIPPED_SOME)


def _delete_files(db: apsw.Connection, files: list[File]) -> list[int]:
    """Delete what can be; the sizes of those files."""
    from sess_cli.edit import live, running, whole_files
    from sess_common.errors import SessError
    from sess_common.program import say

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
    return [*removed.values()]


def _show_files(files: list[File]) -> None:
    from sess_cli.render import amounts, layout
    from sess_cli.terminal import Terminal

    terminal = Terminal()
    for file in files[:_MOST_FILES]:
        size = amounts.size(file.size)
        terminal.write(terminal.line(f"{size:>9}  {layout.home_short(file.path)}"))
    if len(files) > _MOST_FILES:
        terminal.write(f"and {len(files) - _MOST_FILES:,} more")
    total = amounts.size(sum(file.size for file in files))
    terminal.write(f"{amounts.plural(len(files), 'file')}, {total}")


_MOST_SESSIONS = 10


def forget(
    doomed: DeletionOptions,
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
        _show_sessions(db, chosen)
        kept_of = _names_and_files(db, chosen)
    if doomed.dry_run:
        return
    if not doomed.yes and not confirmed(
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


def _show_sessions(db: apsw.Connection, chosen: list[SessionRow]) -> None:
    from sess_cli.terminal import Terminal

    terminal = Terminal()
    for row in chosen[:_MOST_SESSIONS]:
        terminal.write(terminal.line(f"{row.session}  {row.agent}  {row.title or 'untitled'}"))
    if len(chosen) > _MOST_SESSIONS:
        terminal.write(f"and {len(chosen) - _MOST_SESSIONS:,} more")
