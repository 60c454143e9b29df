"""`sess pick`: choose on the screen what to cut out of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import Relink, SessionId, TranscriptNumber, Utc

if TYPE_CHECKING:
    import apsw

    from sess_cli.edit.target import Target
    from sess_cli.picker.marks import Marks
    from sess_schema.queries.transcripts import Transcript


_SUGGESTED = 5  # the best ones are marked


def pick(
    session: SessionId = "last",
    *,
    no_suggest: Annotated[
        bool, typer.Option("--no-suggest", help="Do not mark suggestions from the start.")
    ] = False,
    relink: Relink = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only show what would be cut.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask again.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Cut despite warnings, or soon after the agent has written."),
    ] = False,
    source: TranscriptNumber = None,
    utc: Utc = False,
) -> None:
    """Mark records of a transcript on the screen, and cut them.

    Shows what goes with them and how many tokens are left. What `sess suggest` finds is marked from
    the start. Where the terminal cannot be drawn on, numbers are asked for.
    """
    from sess_cli import choosing, fresh
    from sess_cli.edit import cutting, running, target
    from sess_common.program import say
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions() as db:
        chosen = target.find(db, session, source)
        marks = _marks(db, chosen, transcripts.read(db, chosen.source), suggest=not no_suggest)
        marks.relink = relink
        agreed = _on_screen(marks, utc=utc) if _has_screen() else _in_lines(marks, utc=utc)
        if not agreed or not marks.chosen:
            say("nothing was changed")
            return
        options = choosing.Editing(dry_run, yes, force)

        def plan(db: apsw.Connection) -> cutting.Cut:
            found = transcripts.read(db, chosen.source)
            return cutting.planned(db, chosen, found, marks.chosen, relink=marks.relink)

        running.run(plan, options)


def _marks(db: apsw.Connection, target: Target, transcript: Transcript, *, suggest: bool) -> Marks:
    from sess_cli.edit import cutting
    from sess_cli.edit.suggest import suggestions
    from sess_cli.picker.marks import Marks

    session = target.session.key
    found = suggestions(db, transcript, session)[:_SUGGESTED] if suggest else []
    return Marks(
        transcript.of(session),
        lambda chosen: cutting.plan_of(db, target, transcript, chosen),
        {one.record.number: one for one in found},
    )


def _has_screen() -> bool:
    from sess_cli import finder

    return finder.has_screen()


def _on_screen(marks: Marks, *, utc: bool) -> bool:
    from sess_cli.picker.app import Picker  # slow to import

    return bool(Picker(marks, utc=utc).run())


def _in_lines(marks: Marks, *, utc: bool) -> bool:
    from sess_cli.picker import lines

    return lines.pick(marks, utc=utc)
