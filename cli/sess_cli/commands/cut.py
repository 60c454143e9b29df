"""`sess cut`: take records out of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.choosing import Editing
from sess_cli.options import Relink, SessionId

if TYPE_CHECKING:
    import apsw

    from sess_cli.edit.target import Target
    from sess_schema.queries.transcripts import Transcript


def cut(
    session: SessionId,
    numbers: Annotated[
        str | None,
        typer.Argument(metavar="[N]...", help="Records by number: 5-7,9. See `sess records`."),
    ] = None,
    *,
    match: Annotated[
        list[str] | None,
        typer.Option("--match", metavar="REGEX", help="Records with a text that this matches."),
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option("--event", metavar="KEY", help="The record of this event: ID#KEY, or KEY."),
    ] = None,
    relink: Relink = False,
    options: Editing,
) -> None:
    """Cut records out of a transcript.

    The results of calls that go are cut, too. All other bytes of the file stay as they are. A
    snapshot is taken first: `sess undo` brings everything back. Cursor's databases are not changed;
    what is left goes into a file beside them.
    """
    from sess_cli import fresh
    from sess_cli.edit import cutting, running, target
    from sess_schema.queries import transcripts

    if not (numbers or match or event):
        from sess_common.errors import SessError

        raise SessError("nothing to cut", hint="name records: `5-7,9`, --match or --event")
    with fresh.open_with_sessions() as db:
        chosen = target.find(db, session, options.source)

        def plan(db: apsw.Connection) -> cutting.Cut:
            found = transcripts.read(db, chosen.source)
            seeds = _seeds(
                db, chosen, found, numbers=numbers, match=match or [], events=event or []
            )
            return cutting.planned(db, chosen, found, seeds, relink=relink)

        running.run(plan, options)


def _seeds(
    db: apsw.Connection,
    target: Target,
    transcript: Transcript,
    *,
    numbers: str | None,
    match: list[str],
    events: list[str],
) -> set[int]:
    from sess_cli import cited
    from sess_cli.edit import cutting
    from sess_cli.edit.plan import parse_range
    from sess_common.errors import Exit, SessError

    seeds = parse_range(numbers, len(transcript.records)) if numbers else set()
    for pattern in match:
        found = cutting.matching(db, transcript, target.session.key, pattern)
        if not found:
            raise SessError(f'no record matches "{pattern}"', code=Exit.NOTHING_FOUND)
        seeds |= found
    for given in events:
        event = cited.event_of(db, target.session, given.rpartition("#")[2])
        seeds |= transcript.of_event(event)
    return seeds
