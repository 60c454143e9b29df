"""`sess doctor`: check everything, and name the fix for what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sess_cli.options import AsJson

if TYPE_CHECKING:
    from sess_cli.checks import Check
    from sess_cli.terminal import Terminal
    from sess_common.paths import Home

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_NAME_WIDTH = 11


def doctor(
    *,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also check every page, archived piece and the full text, and show where the bytes"
            " are (slower).",
        ),
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended.")] = False,
    bundle: Annotated[
        str | None,
        typer.Option(
            "--bundle", metavar="FILE", help="Write a report without any transcript content."
        ),
    ] = None,
    secrets: Annotated[
        bool, typer.Option("--secrets", help="Count secrets in sessions, by kind, instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the installation and the index, end to end.

    Exits with 0 if all is well, 4 if the index is unusable, 5 with warnings.
    """
    from sess_cli.checks import FAIL, WARN, every_check
    from sess_cli.output import json_line
    from sess_cli.terminal import Terminal
    from sess_common import paths
    from sess_common.errors import Exit

    terminal = Terminal()
    if secrets:
        from sess_cli import secret_places

        raise typer.Exit(secret_places.show(terminal, as_json=as_json))
    if fix:
        _fix(paths.home())
    found = []
    for check in every_check(paths.home(), deep=deep):
        found.append(check)
        if as_json:
            json_line(check.as_object())
        else:
            _write(terminal, check)
    if bundle is not None:
        from sess_cli import bundles

        bundles.write(bundle, found)
    states = {check.state for check in found}
    if FAIL in states:
        raise typer.Exit(Exit.INDEX_UNUSABLE)
    if WARN in states:
        raise typer.Exit(Exit.SKIPPED_SOME)


def _fix(home: Home) -> None:
    """Close what is open to others, and let the daemon's program mend the index."""
    import subprocess

    from sess_cli.checks import close_to_others
    from sess_common.program import module, say

    for path in close_to_others(home):
        say(f'made "{path}" private')
    if home.index.exists():
        subprocess.run([*module("sessiond"), "repair"], check=False)


def _write(terminal: Terminal, check: Check) -> None:
    state = terminal.style(f"{check.state:<4}", _STYLES[check.state])
    terminal.write(f"{state}  {check.name:<{_NAME_WIDTH}}  {terminal.line(check.message)}")
    indent = " " * (_NAME_WIDTH + 8)
    for detail in check.details:
        terminal.write(indent + terminal.line(detail))
    if check.hint:
        terminal.write(indent + terminal.style(f"hint: {check.hint}", "dim"))
    terminal.stream.flush()
