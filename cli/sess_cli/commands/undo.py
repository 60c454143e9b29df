"""`sess undo`: bring back what an edit took out of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli import fresh
from sess_cli.options import AsJson, Utc
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal, json_line
from sess_common import times
from sess_common.errors import Exit, SessError
from sess_common.program import say
from sess_schema.queries import sessions

if TYPE_CHECKING:
    from sess_cli.edit.log import Edit


def undo(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="An edit, or a session: its last edit. Otherwise the last of all."
        ),
    ] = None,
    *,
    redo: Annotated[bool, typer.Option("--redo", help="Do again what was undone last.")] = False,
    list_them: Annotated[
        bool, typer.Option("--list", help="List edits, the newest first, instead.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Undo even if the file was rewritten since, or written a moment ago."
        ),
    ] = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """Undo an edit of a transcript.

    The file gets exactly the bytes that it had before. Lines that the agent has appended
    since are kept at the end. Edits can be undone for 30 days, or as long as `keep_days` in section
    [edit] of config.toml says.
    """
    from sess_cli.edit import log, running, undoing
    from sess_cli.edit.live import Changed, editing

    if log.folder().is_dir():
        with editing():  # decides about what a crash has interrupted
            pass
    if list_them:
        _show_list(name, utc=utc, as_json=as_json)
        return
    edit = _chosen(name, redo=redo)
    try:
        undone = undoing.undo(edit, force=force)
    except Changed:
        raise SessError(
            f'"{edit.path}" was changed at the same time', hint="try again in a moment"
        ) from None
    for one in undone:
        running.wait_until_read(one.edit.name)
        if as_json:
            _write_json(one.edit, one.by)
        path = layout.home_short(one.edit.path)
        say(f'{_words(one.edit)} of "{path}"')
        if one.kept:
            say(f"kept {amounts.size(one.kept)} that were appended since, at the end")
    say("undo: sess undo" if edit.undoes else "do it again: sess undo --redo")


def _words(undone: Edit) -> str:
    """`undid cut`; when that is undone, `redid cut`."""
    from sess_cli.edit import log

    first = log.by_id(undone.undoes) if undone.undoes else None
    return f"redid {first.command}" if first else f"undid {undone.command}"


def _chosen(name: str | None, *, redo: bool) -> Edit:
    from sess_cli.edit import log, undoing

    if name is None:
        return undoing.last(redo=redo)
    edit = log.by_id(name)
    if edit is not None:
        return edit
    return undoing.last(redo=redo, session=_session(name))


def _session(name: str) -> str:
    try:
        with fresh.open_with_sessions(whole=True) as db:
            return sessions.resolve(db, name).session
    except SessError as error:
        if error.message.startswith("no such session"):
            raise SessError(
                f'no edit and no session "{name}"',
                hint="`sess undo --list` lists edits",
                code=Exit.NOTHING_FOUND,
            ) from None
        raise


def _show_list(name: str | None, *, utc: bool, as_json: bool) -> None:
    from sess_cli.edit import log

    edits = log.entries()
    if name is not None:
        session = _session(name)
        edits = [edit for edit in edits if edit.session == session]
    if not edits and not as_json:
        raise SessError("no edits yet", code=Exit.NOTHING_FOUND)
    terminal = Terminal()
    for edit in edits:
        if as_json:
            _write_json(edit)
            continue
        state = "expired" if edit.expired else edit.state
        count = amounts.plural(len(edit.cut) + len(edit.pulled), "record")
        what = f"{edit.command} {count}" if edit.cut else edit.command
        what += f" {edit.undoes}" if edit.undoes else ""
        time = amounts.clock(edit.ts, utc=utc)
        start = f"{edit.id}  {time}  {state:<7}  {what:<16}  "
        path = terminal.line(layout.home_short(edit.path))
        if terminal.width:
            path = layout.tail_of(path, max(20, terminal.width - len(start)))
        terminal.write(start + path)


def _write_json(edit: Edit, by: Edit | None = None) -> None:
    json_line(
        {
            "edit": edit.id,
            "ts": times.iso(edit.ts),
            "command": edit.command,
            "session": edit.session,
            "agent": edit.agent,
            "source": edit.path,
            "state": "undone" if by else edit.state,
            "expired": edit.expired,
            "undoes": edit.undoes,
            "undone_by": by.id if by else None,
            "cut": [*edit.cut],
            "pulled": [*edit.pulled],
            "bytes_before": edit.before.size if edit.before else None,
            "bytes_after": edit.after.size if edit.after else None,
        }
    )
