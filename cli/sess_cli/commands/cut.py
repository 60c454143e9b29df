"""`sess cut`, `truncate`, `pick` and `suggest`: take records out of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import (
    AsJson,
    CutOptions,
    DryCut,
    ForceCut,
    NoSync,
    Relink,
    SessionId,
    TranscriptNumber,
    Utc,
    cited_event,
)
from sess_cli.render import layout
from sess_cli.terminal import Terminal, json_line
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say

if TYPE_CHECKING:
    from sess_cli.edit.cutting import Cut, Target
    from sess_cli.edit.suggest import Suggestion
    from sess_cli.picker import Marks
    from sess_schema.queries.transcripts import Transcript

_POINTED_OUT = 5  # suggestions


def cut(
    session: SessionId,
    numbers: Annotated[
        list[str] | None,
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
    relink: Relink = True,
    options: CutOptions,
) -> None:
    """Cut records out of a transcript.

    The results of calls that go are cut, too. All other bytes of the file stay as they are. A
    snapshot is taken first: `sess undo` brings everything back. Cursor's databases are not changed;
    what is left goes into a file beside them.
    """
    from sess_cli.edit import cutting, running
    from sess_schema.queries import transcripts

    if not (numbers or match or event):
        raise SessError("nothing to cut", hint="name records: `5-7,9`, --match or --event")
    with fresh.open_with_sessions(whole=True) as db:
        target = cutting.find_target(db, session, options.source)

        def plan(db: apsw.Connection) -> Cut:
            transcript = transcripts.read(db, target.source)
            named = _named_records(
                db,
                target,
                transcript,
                numbers=numbers or [],
                patterns=match or [],
                citations=event or [],
            )
            return cutting.planned_cut(db, target, transcript, named, relink=relink)

        running.run(plan, options)


def _named_records(
    db: apsw.Connection,
    target: Target,
    transcript: Transcript,
    *,
    numbers: list[str],
    patterns: list[str],
    citations: list[str],
) -> set[int]:
    from sess_cli.edit import cutting
    from sess_cli.edit.plan import parse_range

    named = parse_range(",".join(numbers), len(transcript.records)) if numbers else set()
    for pattern in patterns:
        matches = cutting.matching(db, transcript, target.session.key, pattern)
        if not matches:
            raise SessError(f'no record matches "{pattern}"', code=Exit.NOTHING_FOUND)
        named |= matches
    for citation in citations:
        event = cited_event(db, target.session, citation.rpartition("#")[2])
        named |= transcript.of_event(event)
    return named


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
    from sess_cli.edit import cutting, running
    from sess_cli.edit.whole_files import checked_id
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions(whole=True) as db:
        target = cutting.find_target(db, checked_id(session), options.source)

    def plan(db: apsw.Connection) -> Cut:
        transcript = transcripts.read(db, target.source)
        truncation = cutting.planned_truncation(db, target, transcript, before_user)
        if truncation is None:
            say(f"the session has no more than {counted(before_user, 'prompt')}: nothing to do")
            raise typer.Exit
        return truncation

    running.run(plan, options)


def pick(
    session: SessionId = "last",
    *,
    no_suggest: Annotated[
        bool, typer.Option("--no-suggest", help="Do not look for suggestions.")
    ] = False,
    relink: Relink = True,
    dry_run: DryCut = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask again.")] = False,
    force: ForceCut = False,
    source: TranscriptNumber = None,
    utc: Utc = False,
) -> None:
    """Mark records of a transcript on the screen, and cut them.

    Shows what goes with them and how many tokens are left. What `sess suggest` finds is pointed
    out; `s` marks all of it. Where the terminal cannot be drawn on, numbers are asked for.
    """
    from sess_cli import finder, picker
    from sess_cli.edit import cutting, running
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions(whole=True) as db:
        target = cutting.find_target(db, session, source)
        marks = _marks(db, target, transcripts.read(db, target.source), suggest=not no_suggest)
        marks.relink, marks.force = relink, force
        on_screen = finder.has_screen()
        accepted = (_pick_on_screen if on_screen else picker.pick_by_numbers)(marks, utc=utc)
        if not accepted or not marks.chosen:
            say("nothing was changed")
            _keep_marks(target, marks)
            return

        def plan(db: apsw.Connection) -> Cut:
            transcript = transcripts.read(db, target.source)
            return cutting.planned_cut(db, target, transcript, marks.chosen, relink=marks.relink)

        done = False
        try:
            done = running.run(plan, CutOptions(dry_run, yes, marks.force))
        finally:
            if not done:
                _keep_marks(target, marks)


def _keep_marks(target: Target, marks: Marks) -> None:
    """Tell how to cut what was marked and is not cut."""
    if marks.chosen:
        numbers = ",".join(map(str, sorted(marks.chosen)))
        say(f"marked: sess cut {target.session.session} {numbers} --dry-run")


def _marks(db: apsw.Connection, target: Target, transcript: Transcript, *, suggest: bool) -> Marks:
    from sess_cli.edit import cutting
    from sess_cli.edit.suggest import suggestions
    from sess_cli.picker import Marks

    session = target.session.key
    best = suggestions(db, transcript, session)[:_POINTED_OUT] if suggest else []
    return Marks(
        transcript.of(session),
        lambda chosen: cutting.plan_of(db, target, transcript, chosen),
        {suggestion.record.number: suggestion for suggestion in best},
    )


def _pick_on_screen(marks: Marks, *, utc: bool) -> bool:
    from sess_cli.picker_screen import Picker  # slow to import

    return bool(Picker(marks, utc=utc).run())


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
    from sess_cli.edit import cutting
    from sess_cli.edit.suggest import suggestions
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions(sync=not no_sync) as db:
        target = cutting.find_target(db, session, source)
        ranked = suggestions(db, transcripts.read(db, target.source), target.session.key)
    ranked = [suggestion for suggestion in ranked if suggestion.score >= min_score]
    shown = ranked[:top] if top else ranked
    if as_json:
        _write_suggestions(target, shown)
    elif shown:
        _show_suggestions(target, shown, len(ranked))
    else:
        say("nothing to suggest")


def _show_suggestions(target: Target, shown: list[Suggestion], total: int) -> None:
    from sess_cli.edit import listing

    terminal = Terminal()
    for suggestion in shown:
        terminal.write(listing.row(terminal, suggestion.record))
        reason = layout.cut(terminal.line(suggestion.reason), (terminal.width or 120) - 14)
        terminal.write(f"{suggestion.score:>13.2f}  {terminal.style(reason, 'yellow')}")
    tokens = listing.tokens(sum(suggestion.record.tokens for suggestion in shown))
    more = f", {total - len(shown)} more with --top 0" if total > len(shown) else ""
    terminal.write(f"\n{len(shown)} suggested{more}; about {tokens} tokens")
    to_cut = sorted({number for suggestion in shown for number in suggestion.to_cut})
    numbers = ",".join(map(str, to_cut))
    terminal.write(f"cut them: sess cut {target.session.session} {numbers} --dry-run")


def _write_suggestions(target: Target, shown: list[Suggestion]) -> None:
    from sess_schema import objects

    for suggestion in shown:
        json_line(
            {
                "session": target.session.session,
                **objects.record_fields(suggestion.record),
                "score": suggestion.score,
                "triggers": [
                    {"id": trigger.id, "score": round(trigger.score, 6), "reason": trigger.reason}
                    for trigger in suggestion.triggers
                ],
            }
        )
