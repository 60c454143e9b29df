"""`sess doctor`: check everything, and name the fix for what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson

if TYPE_CHECKING:
    from sess_cli.checks import Check
    from sess_cli.terminal import Terminal

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_NAME_WIDTH = 11


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    *,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check every page and the full-text index (slower).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the installation and the index, end to end.

    Exits with 0 if all is well, 4 if the index is unusable, 5 with warnings.
    """
    from sess_cli.checks import FAIL, WARN, every_check  # noqa: PLC0415
    from sess_cli.output import json_line  # noqa: PLC0415
    from sess_cli.terminal import Terminal  # noqa: PLC0415
    from sess_schema import paths  # noqa: PLC0415
    from sess_schema.errors import Exit  # noqa: PLC0415

    terminal = Terminal()
    states = set()
    for check in every_check(paths.home(), deep=deep):
        states.add(check.state)
        if as_json:
            json_line(
                {
                    "check": check.name,
                    "state": check.state,
                    "message": check.message,
                    "details": check.details,
                    "hint": check.hint,
                }
            )
        else:
            _write(terminal, check)
    if FAIL in states:
        raise typer.Exit(Exit.INDEX_UNUSABLE)
    if WARN in states:
        raise typer.Exit(Exit.SKIPPED_SOME)


def _write(terminal: Terminal, check: Check) -> None:
    state = terminal.style(f"{check.state:<4}", _STYLES[check.state])
    terminal.write(f"{state}  {check.name:<{_NAME_WIDTH}}  {terminal.line(check.message)}")
    indent = " " * (_NAME_WIDTH + 8)
    for detail in check.details:
        terminal.write(indent + terminal.line(detail))
    if check.hint:
        terminal.write(indent + terminal.style(f"hint: {check.hint}", "dim"))
    terminal.stream.flush()
