"""`sess records`: the records of a transcript, numbered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson, NoPager, NoSync, SessionId, TranscriptNumber, Utc

if TYPE_CHECKING:
    from sess_cli.edit.target import Target
    from sess_schema.queries.transcripts import Transcript


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
    from sess_cli import fresh
    from sess_cli.edit import listing, target
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions(sync=not no_sync) as db:
        chosen = target.find(db, session, source)
        found = transcripts.read(db, chosen.source)
    if as_json:
        _write_json(chosen, found)
        return
    from sess_cli.paging import pager

    with pager(wanted=not no_pager) as terminal:
        for line in listing.lines(terminal, chosen, found, graph=graph, utc=utc):
            terminal.write(line)


def _write_json(chosen: Target, found: Transcript) -> None:
    from sess_cli.output import json_line
    from sess_schema import objects

    for record in found.of(chosen.session.key):
        json_line({"session": chosen.session.session, **objects.record(record, found)})
