"""`sess show`: one session as a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson, NoPager, NoSync, SessionId, Superseded, Utc

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import EventId
    from sess_schema.queries.sessions import SessionRow
    from sess_schema.session.reader import Reader


def show(
    session: SessionId,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Show full output, thinking and system events.")
    ] = False,
    no_pager: NoPager = False,
    superseded: Superseded = False,
    utc: Utc = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Show a session, or start at one of its events.

    ID#EVENT, as `sess search` prints it, starts at that event.
    """
    from sess_cli import cited, fresh
    from sess_cli.paging import pager
    from sess_schema.queries import sessions
    from sess_schema.session.reader import Reader

    name, at = cited.divided(session)
    with (
        pager(wanted=not no_pager and not as_json) as terminal,
        fresh.open_with_sessions(sync=not no_sync) as db,
    ):
        row = sessions.resolve(db, name)
        reader = Reader(db, row.key, superseded=superseded)
        event = None if at is None else cited.event_of(db, row, at, superseded=superseded)
        if as_json:
            _write_json(db, row, reader, event)
            return
        from sess_cli.render.transcript import TranscriptView

        view = TranscriptView(db, terminal, row, full=full, utc=utc)
        for line in view.lines(reader, at=event):
            terminal.write(line)


def _write_json(
    db: apsw.Connection, row: SessionRow, reader: Reader, event: EventId | None
) -> None:
    from sess_cli.output import json_line
    from sess_schema import objects
    from sess_schema.queries import sessions

    subagents = {child.call_id: child.session for child in sessions.children(db, row.key)}
    originals: dict[int, str | None] = {row.key: None}
    for entry in reader.entries() if event is None else reader.some([event]):
        if entry.session_id not in originals:
            originals[entry.session_id] = sessions.by_key(db, entry.session_id).session
        json_line(
            objects.event(
                entry,
                reader.input(entry) if entry.type == "tool_use" else None,
                key=reader.keys.of[entry.id],
                images=entry.images,
                files=reader.files(entry.id),
                subagent=subagents.get(entry.call_id) if entry.call_id else None,
                copied_from=originals[entry.session_id],
            )
        )
