"""`sess suggest`: which records of a session may be worth cutting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson, NoSync, SessionId, TranscriptNumber

if TYPE_CHECKING:
    from sess_cli.edit.suggest import Suggestion
    from sess_cli.edit.target import Target


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
    from sess_cli.edit import suggest as heuristics
    from sess_cli.edit import target
    from sess_common.program import say
    from sess_schema.queries import transcripts

    with fresh.open_with_sessions(sync=not no_sync) as db:
        chosen = target.find(db, session, source)
        found = heuristics.suggestions(db, transcripts.read(db, chosen.source), chosen.session.key)
    found = [one for one in found if one.score >= min_score]
    shown = found[:top] if top else found
    if as_json:
        _write_json(chosen, shown)
    elif shown:
        _show(chosen, shown, len(found))
    else:
        say("nothing to suggest")


def _show(target: Target, found: list[Suggestion], total: int) -> None:
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


def _write_json(target: Target, found: list[Suggestion]) -> None:
    from sess_cli.output import json_line
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
