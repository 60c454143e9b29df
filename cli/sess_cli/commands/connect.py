"""`sess connect`: lets an agent ask the index."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import Yes, confirmed
from sess_cli.terminal import Terminal
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say

if TYPE_CHECKING:
    from sess_cli.connect.changes import Change


def connect(
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="Such as claude, codex, cursor.")
    ] = None,
    *,
    hooks: Annotated[
        bool,
        typer.Option("--hooks", help="Also tell it things unasked, where it can: `sess brief -h`."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only show what would change.")
    ] = False,
    as_text: Annotated[
        bool, typer.Option("--print", help="Print what to add to which file, and change nothing.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Bring the files back as they were.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Let an agent search past sessions by itself.

    Adds `sess mcp` to the agent's own settings, and a skill that says when to use it. Shows what
    will change and asks first. Without AGENT, lists the agents and whether they are connected.

    \b
    sess connect claude --hooks
    sess connect claude --undo
    """
    from sess_cli.connect import changes
    from sess_cli.connect.layouts import LAYOUTS

    if agent is None:
        _list()
        return
    if agent not in LAYOUTS:
        import difflib

        near = difflib.get_close_matches(agent, LAYOUTS, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(LAYOUTS)}"
        raise SessError(f"no such agent to connect: {agent}", hint=hint)
    layout = LAYOUTS[agent]
    if undo:
        for line in changes.undo(agent):
            say(line)
        return
    if hooks and not layout.has_hooks:
        able = ", ".join(name for name, one in LAYOUTS.items() if one.has_hooks)
        raise SessError(f"no hooks for {layout.title} yet", hint=f"agents with hooks: {able}")
    planned = changes.planned(layout.edits(command(), hooks=hooks))
    if as_text:
        _print(planned)
        return
    needed = [change for change in planned if change.is_needed]
    if not needed:
        say(f"{layout.title} is connected already")
        return
    _show(needed)
    if dry_run:
        return
    question = f"Change {counted(len(needed), 'file')} of {layout.title}?"
    if not yes and not confirmed(question, "changes them"):
        say("nothing was changed")
        raise typer.Exit(Exit.NOTHING_FOUND)
    changes.make(agent, needed)
    say(f"{layout.title} is connected; it asks from its next session on")
    say(f"undo: sess connect {agent} --undo")


def command() -> str:
    """How agents start this program, whatever their PATH."""
    from shutil import which

    own = os.path.abspath(sys.argv[0])
    if os.path.basename(own) == "sess" and os.access(own, os.X_OK):
        return own
    return which("sess") or "sess"


def _print(planned: list[Change]) -> None:
    terminal = Terminal()
    for number, change in enumerate(planned):
        if number:
            terminal.write("")
        terminal.write(terminal.style(terminal.text(f"# {change.path}"), "bold"))
        for line in change.diff():
            if line.startswith("+") and not line.startswith("+++"):
                terminal.write(terminal.text(line[1:]))


def _show(needed: list[Change]) -> None:
    terminal = Terminal()
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for change in needed:
        for line in change.diff():
            shown = terminal.text(line)
            colour = colours.get(line[:1])
            terminal.write(terminal.style(shown, colour) if colour else shown)


def _list() -> None:
    from sess_cli.connect import changes
    from sess_cli.connect.layouts import LAYOUTS

    terminal = Terminal()
    width = max(map(len, LAYOUTS))
    for name, layout in LAYOUTS.items():
        try:
            edits = layout.edits(command(), hooks=False)
            first = changes.planned(edits[:1])[0]
            if not first.is_needed:
                state = "connected"
            else:
                state = "not connected" if first.path.parent.exists() else "not on this machine"
        except SessError as error:
            state = str(error)
        terminal.write(f"{name:{width}}  {layout.title:14}  {state}")
