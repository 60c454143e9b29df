"""`sess show` and `records`: one session as a transcript, and the records of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import (
    AsJson,
    NoPager,
    NoSync,
    SessionId,
    Superseded,
    TranscriptNumber,
    Utc,
    cited_event,
    split_citation,
)
from sess_cli.terminal import json_line, pager
from sess_schema.ids import EventId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

if TYPE_CHECKING:
    from sess_cli.edit.cutting import Target
    from sess_schema.queries.transcripts import Transcript
    from sess_schema.session import Reader


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
    from sess_schema.session import Reader

    name, at = split_citation(session)
    with (
        pager(wanted=not no_pager and not as_json) as terminal,
        fresh.open_with_sessions(sync=not no_sync) as db,
    ):
        row = sessions.resolve(db, name)
        reader = Reader(db, row.key, superseded=superseded)
        event = None if at is None else cited_event(db, row, at, superseded=superseded)
        if as_json:
            _write_events(db, row, reader, event)
            return
        from sess_cli.render.transcript import TranscriptView

        view = TranscriptView(db, terminal, row, full=full, utc=utc)
        for line in view.lines(reader, at=event):
            terminal.write(line)


def _write_events(
    db: apsw.Connection, row: SessionRow, reader: Reader, event: EventId | None
) -> None:
    from sess_schema import objects

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


def records(
    session: SessionId = "last",
    *,
    source: TranscriptNumber = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="Show which record answers which call.")
    ] = False,
    no_pager: NoPager = False,
    utc: Utc = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """List the records of a transcript with their numbers.

    The number is the position of a record in its file, from 1. Tokens are an estimate.
    """
    from sess_cli.edit import cutting, listing
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions(sync=not no_sync) as db:
        target = cutting.find_target(db, session, source)
        transcript = transcripts.read(db, target.source)
    if as_json:
        _write_records(target, transcript)
        return
    with pager(wanted=not no_pager) as terminal:
        for line in listing.lines(terminal, target, transcript, graph=graph, utc=utc):
            terminal.write(line)


def _write_records(target: Target, transcript: Transcript) -> None:
    from sess_schema import objects

    for record in transcript.of(target.session.key):
        json_line({"session": target.session.session, **objects.record(record, transcript)})
