"""`sess brief` and `sess log`: what an agent is told unasked, and what agents were given."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync, SessionId, Utc
from sess_cli.terminal import Terminal, json_line
from sess_common import times
from sess_common.errors import Exit, SessError


def brief(
    session: SessionId = "last",
    *,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=50, metavar="N", help="At most N tokens.")
    ] = 600,
    hook: Annotated[
        bool, typer.Option("--hook", help="Answer an agent's hook: its JSON is on stdin.")
    ] = False,
    no_attribution: Annotated[
        bool, typer.Option("--no-attribution", help="With --hook: say nothing to the person.")
    ] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Print what matters of a session in few words.

    What was asked, standing orders, decisions, files, commands, open errors, to-dos. With --hook,
    which `sess connect AGENT --hooks` sets up, the agent is told this when its conversation was
    compacted or resumed, and after a failed command what ended the same error before. It answers
    within 50 ms or says nothing.
    """
    if hook:
        from sess_cli import hooks

        hooks.answer(attribution=not no_attribution)
        return
    if no_attribution:
        raise SessError("--no-attribution goes with --hook")
    from sess_cli import briefing
    from sess_cli.export.story import usual_redactor
    from sess_schema.queries import sessions

    with fresh.open_with_sessions(sync=not no_sync) as db, db:
        row = sessions.resolve(db, session)
        facts = briefing.facts_of(db, row.key, row.directory)
    redactor = usual_redactor()
    if as_json:
        value = redactor.value(briefing.as_object(facts), {})
        json_line({"session": row.session, **value})
        return
    text = briefing.write(facts, redactor, max_tokens)
    if not text:
        raise SessError(f"session {row.session} has nothing to brief", code=Exit.NOTHING_FOUND)
    terminal = Terminal()
    for line in text.split("\n"):
        terminal.write(terminal.text(line))


def log(
    *,
    given_: Annotated[
        bool, typer.Option("--given", help="List what agents were given, the latest last.")
    ] = False,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, metavar="N", help="The last N.")
    ] = 50,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List what agents were given from the index.

    Each answer of `sess mcp` and of hooks, with its size in tokens. The words themselves are not
    kept. `sessiond logs` shows the log of the daemon.
    """
    from sess_cli import given
    from sess_cli.render import amounts, layout

    if not given_:
        raise SessError(
            "say what to list: --given", hint="`sessiond logs` shows the log of the daemon"
        )
    entries = [*given.entries()][-limit:]
    if not entries:
        raise SessError("no agent was given anything yet", code=Exit.NOTHING_FOUND)
    terminal = Terminal()
    for entry in entries:
        if as_json:
            json_line(entry)
            continue
        when = amounts.clock(times.since(entry["ts"]), utc=utc, seconds=True)
        told = "" if entry.get("found") else "  nothing fits"
        terminal.write(
            f"{when}  {entry['door']:4}  {entry['what']:16}  {entry['tokens']:>6,} tokens"
            f"  {entry['ms']:>5,} ms  {layout.home_short(terminal.line(entry['project']))}{told}"
        )
