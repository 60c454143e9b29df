"""`sess label`, `title` and `pin`: what people note about their sessions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync, SessionId
from sess_cli.terminal import Terminal, json_line
from sess_common import paths, requests
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say
from sess_schema import marks
from sess_schema.marks import LABEL, PIN, TITLE
from sess_schema.queries import known, sessions
from sess_schema.queries.sessions import SessionRow


def label(
    session: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Session ID; without one, all labels are listed."),
    ] = None,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Labels to put on it.")
    ] = None,
    *,
    remove: Annotated[
        list[str] | None,
        typer.Option("--remove", "-d", metavar="NAME", help="Take a label off; may be repeated."),
    ] = None,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Put labels on a session, or list labels.

    `label:NAME` in searches and `--label NAME` select by them. They are kept in the index, never in
    the transcript, and stay when it is deleted.
    """
    if session is None:
        _list_labels(as_json=as_json, no_sync=no_sync)
        return
    put = [marks.checked(LABEL, name) for name in names or ()]
    take = [marks.checked(LABEL, name) for name in remove or ()]
    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
        there = marks.Marks(db).labels(row.key)
    for name in take:
        if name not in there:
            raise known.missing("label of this session", name, there)
    if put or take:
        _ask([row], put=[(LABEL, name) for name in put], take=[(LABEL, name) for name in take])
        there = sorted({*there, *put} - set(take))
    _show(row, "labels", there, ", ".join(there) or "no labels", as_json=as_json)


def _list_labels(*, as_json: bool, no_sync: bool) -> None:
    with fresh.open_with_sessions(sync=not no_sync) as db:
        counts = marks.counts(db)
    if not counts:
        hint = "`sess label ID NAME` puts one on a session"
        raise SessError("no labels", hint=hint, code=Exit.NOTHING_FOUND)
    terminal = Terminal()
    for name, number in counts:
        if as_json:
            json_line({"label": name, "sessions": number})
        else:
            terminal.write(f"{number:>6,}  {terminal.line(name)}")


def title(
    session: SessionId,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="The title to give it.")
    ] = None,
    *,
    remove: Annotated[
        bool, typer.Option("--remove", help="Go back to the title that the agent gave it.")
    ] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Give a session a title of your own, or show the one it has.

    It takes the place of the agent's in lists, pages and searches. It is kept in the index, never
    in the transcript.
    """
    new = marks.checked(TITLE, " ".join(text)) if text else None
    if new is not None and remove:
        raise SessError("--remove takes no title")
    with fresh.open_with_sessions(sync=not no_sync) as db:
        row = sessions.resolve(db, session)
    if remove:
        _ask([row], take=[(TITLE, None)])
    elif new is not None:
        _ask([row], put=[(TITLE, new)])
    with fresh.open_index(sync=False) as db:
        shown = sessions.title_of(db, sessions.by_key(db, row.key))
    _show(row, "title", shown, shown, as_json=as_json)


def pin(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Session IDs, or `last`.")],
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Unpin them.")] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Pin sessions, to find them again.

    Lists show them with a star; `is:pinned` in searches and `--pinned` select them.
    """
    with fresh.open_with_sessions(sync=not no_sync) as db:
        rows = [sessions.resolve(db, name) for name in ids]
    _ask(rows, **{"take" if remove else "put": [(PIN, "")]})
    if as_json:
        for row in rows:
            json_line({"session": row.session, "pinned": not remove})
    else:
        say(f"{'unpinned' if remove else 'pinned'} {counted(len(rows), 'session')}")


def _ask(rows: list[SessionRow], **changes: Any) -> None:
    keys = list(dict.fromkeys(row.key for row in rows))
    requests.ask(paths.home(), "mark", sessions=keys, **changes)


def _show(row: SessionRow, field: str, value: Any, text: str, *, as_json: bool) -> None:
    if as_json:
        json_line({"session": row.session, field: value})
    else:
        terminal = Terminal()
        terminal.write(terminal.line(text))
