"""`sess now`: who works, and who waits for you."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync
from sess_cli.render import amounts, layout
from sess_cli.render.tallies import money
from sess_cli.terminal import Terminal, json_line
from sess_common import times
from sess_common.errors import Exit, SessError
from sess_common.program import Ended, say
from sess_schema.queries import sessions

if TYPE_CHECKING:
    from sess_cli.now import Live

_EVERY = 2.0  # seconds
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_STYLES = {"waiting": "yellow", "working": "green", "unknown": "dim"}


def now(
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again whenever it changes.")
    ] = False,
    line: Annotated[
        bool, typer.Option("--line", help="One short line, for a status bar or tmux.")
    ] = False,
    as_json: AsJson = False,
    no_sync: NoSync = False,
) -> None:
    """Show which sessions go on, and which wait for you.

    A session waits if it asked something, wants a plan approved, or has said its last word. A call
    without a result for a minute may run or wait for your permission: its state is unknown.
    """
    if watch and (line or as_json):
        raise SessError("--watch goes without --line and --json")
    from sess_cli import now as live

    terminal = Terminal()
    shown = ""
    while True:
        with fresh.open_with_sessions(sync=not no_sync) as db, db:
            listed = live.read(db, times.now_ms(), live.processes())
            if line:
                terminal.write(terminal.line(live.line(listed)))
                return
            if as_json:
                for one in listed:
                    json_line(one.as_object())
                break
            text = "\n".join(_lines(db, terminal, listed))
        if not watch:
            if text:
                terminal.write(text)
            break
        if text != shown:
            shown = text
            terminal.write(
                (_CLEAR if terminal.interactive else "") + (text or "no session goes on")
            )
            terminal.stream.flush()
        time.sleep(_EVERY)
    if not listed:
        say("no session goes on; `sess list` lists the last ones")
        raise Ended(Exit.NOTHING_FOUND)


def _lines(db: apsw.Connection, terminal: Terminal, listed: list[Live]) -> list[str]:
    """Two lines a session: who and what for, and what it does."""
    ids = sessions.ShortIds(db)
    moment = times.now_ms()
    lines = []
    for one in listed:
        state = one.state if one.waits_for is None else f"{one.state} ({one.waits_for})"
        head = [
            terminal.style(layout.pad(state, 18), _STYLES[one.state]),
            terminal.style(terminal.line(ids.of(one.row)), "cyan"),
            terminal.line(one.row.agent),
            terminal.line(layout.home_short(one.row.project) or "no project"),
            money(one.cost_nano),
        ]
        if one.subagents:
            head.append(amounts.plural(one.subagents, "subagent"))
        lines.append("  ".join(head))
        ago = amounts.ago(one.since, moment)
        room = (terminal.width or 120) - 6 - len(ago)
        doing = layout.cut(terminal.line(f"{one.title} → {one.doing}"), max(20, room))
        lines.append(f"    {doing}  {terminal.style(ago, 'dim')}")
    return lines
