"""`sess cut`, `truncate`, `pick` and `suggest`: take records out of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson, CutOptions, NoSync, Relink, SessionId, TranscriptNumber, Utc

if TYPE_CHECKING:
    import apsw

    from sess_cli.edit.cutting import Cut, Target
    from sess_cli.edit.suggest import Suggestion
    from sess_cli.picker import Marks
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
    options: CutOptions,
) -> None:
    """Cut records out of a transcript.

    The results of calls that go are cut, too. All other bytes of the file stay as they are. A
    snapshot is taken first: `sess undo` brings everything back. Cursor's databases are not changed;
    what is left goes into a file beside them.
    """
    from sess_cli import fresh
    from sess_cli.edit import cutting, running
    from sess_schema.queries import transcripts

    if not (numbers or match or event):
        from sess_common.errors import SessError

        raise SessError("nothing to cut", hint="name records: `5-7,9`, --match or --event")
    with fresh.open_with_sessions() as db:
        chosen = cutting.find_target(db, session, options.source)

        def plan(db: apsw.Connection) -> cutting.Cut:
            found = transcripts.read(db, chosen.source)
            seeds = _named_records(
                db, chosen, found, numbers=numbers, match=match or [], events=event or []
            )
            return cutting.planned_cut(db, chosen, found, seeds, relink=relink)

        running.run(plan, options)


def _named_records(
    db: apsw.Connection,
    target: Target,
    transcript: Transcript,
    *,
    numbers: str | None,
    match: list[str],
    events: list[str],
) -> set[int]:
    from sess_cli import options
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
        event = options.cited_event(db, target.session, given.rpartition("#")[2])
        seeds |= transcript.of_event(event)
    return seeds


def truncate(
    session: SessionId,
    *,
    before_user: Annotated[
        int,
        typer.Option(
            "--before-user",
            min=0,
            metavar="N",
            help="Keep the first N prompts and what followed them; 0 keeps none.",
        ),
    ],
    options: CutOptions,
) -> None:
    """Take everything after the first N prompts out of a session.

    The session keeps its ID and can be resumed from there. A snapshot is taken first: `sess undo`
    brings everything back.
    """
    from sess_cli import fresh
    from sess_cli.edit import cutting, running
    from sess_cli.edit.whole_files import checked_id
    from sess_common.program import counted, say
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions() as db:
        chosen = cutting.find_target(db, checked_id(session), options.source)

    def plan(db: apsw.Connection) -> Cut:
        found = transcripts.read(db, chosen.source)
        cut = cutting.planned_truncation(db, chosen, found, before_user)
        if cut is None:
            say(f"the session has no more than {counted(before_user, 'prompt')}: nothing to do")
            raise typer.Exit
        return cut

    running.run(plan, options)


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
    from sess_cli import fresh
    from sess_cli import options as choosing
    from sess_cli.edit import cutting, running
    from sess_common.program import say
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions() as db:
        chosen = cutting.find_target(db, session, source)
        marks = _marks(db, chosen, transcripts.read(db, chosen.source), suggest=not no_suggest)
        marks.relink = relink
        agreed = _on_screen(marks, utc=utc) if _has_screen() else _in_lines(marks, utc=utc)
        if not agreed or not marks.chosen:
            say("nothing was changed")
            return
        options = choosing.CutOptions(dry_run, yes, force)

        def plan(db: apsw.Connection) -> cutting.Cut:
            found = transcripts.read(db, chosen.source)
            return cutting.planned_cut(db, chosen, found, marks.chosen, relink=marks.relink)

        running.run(plan, options)


def _marks(db: apsw.Connection, target: Target, transcript: Transcript, *, suggest: bool) -> Marks:
    from sess_cli.edit import cutting
    from sess_cli.edit.suggest import suggestions
    from sess_cli.picker import Marks

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
    from sess_cli.picker_screen import Picker  # slow to import

    return bool(Picker(marks, utc=utc).run())


def _in_lines(marks: Marks, *, utc: bool) -> bool:
    from sess_cli import picker

    return picker.pick_by_numbers(marks, utc=utc)


def suggest(
    session: SessionId = "last",
    *,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, help="The best N suggestions; 0 for all.")
    ] = 5,
    min_score: Annotated[
        float, typer.Option("--min-score", metavar="X", help="Only suggestions from this score on.")
    ] = 0.0,
    source: TranscriptNumber = None,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Suggest records that may be worth cutting.

    Nothing is changed. The score adds up the reasons: many tokens (1 to 1.8), several edits of one
    file in a row (1.2), a correction right after it (1 to 1.3), a failed call before a correction
    (1.3), five or more answers in a row without a call (0.9).
    """
    from sess_cli import fresh
    from sess_cli.edit import cutting
    from sess_cli.edit import suggest as heuristics
    from sess_common.program import say
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions(sync=not no_sync) as db:
        chosen = cutting.find_target(db, session, source)
        found = heuristics.suggestions(db, transcripts.read(db, chosen.source), chosen.session.key)
    found = [one for one in found if one.score >= min_score]
    shown = found[:top] if top else found
    if as_json:
        _write_suggestions(chosen, shown)
    elif shown:
        _show_suggestions(chosen, shown, len(found))
    else:
        say("nothing to suggest")


def _show_suggestions(target: Target, found: list[Suggestion], total: int) -> None:
    from sess_cli.edit import listing
    from sess_cli.render import layout
    from sess_cli.terminal import Terminal

    terminal = Terminal()
    for one in found:
        terminal.write(listing.row(terminal, one.record))
        reason = layout.cut(terminal.line(one.reason), (terminal.width or 120) - 14)
        terminal.write(f"{one.score:>13.2f}  {terminal.style(reason, 'yellow')}")
    tokens = listing.tokens(sum(one.record.tokens for one in found))
    more = f", {total - len(found)} more with --top 0" if total > len(found) else ""
    terminal.write(f"\n{len(found)} suggested{more}; about {tokens} tokens")
    numbers = ",".join(map(str, sorted({number for one in found for number in one.to_cut})))
    terminal.write(f"cut them: sess cut {target.session.session} {numbers} --relink --dry-run")


def _write_suggestions(target: Target, found: list[Suggestion]) -> None:
    from sess_cli.terminal import json_line
    from sess_schema import objects

    for one in found:
        record = objects.record_fields(one.record)
        triggers = [
            {"id": trigger.id, "score": round(trigger.score, 6), "reason": trigger.reason}
            for trigger in one.triggers
        ]
        json_line(
            {
                "session": target.session.session,
                **record,
                "score": one.score,
                "triggers": triggers,
            }
        )
