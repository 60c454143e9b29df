"""The `sessiond` command: wiring only; each verb has its own file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sess_schema import __version__, completion, program, shells
from sessiond.commands import (
    agents,
    config,
    install,
    logs,
    repair,
    reprice,
    restore_backup,
    salvage,
    start,
    status,
    stop,
    sync,
)
from sessiond.commands.options import InstallCompletion, ShowCompletion

app = typer.Typer(
    help="Index coding-agent transcripts as they are written.",
    epilog=program.EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"sessiond {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    install_completion: InstallCompletion = False,
    show_completion: ShowCompletion = False,
) -> None:
    """Index coding-agent transcripts as they are written."""


for verb in (
    *(start, stop, status, sync, agents, config, install, logs, reprice, repair, salvage),
    restore_backup,
):
    verb.register(app)


def run() -> None:
    given = sys.argv[1:]

    def follow() -> None:
        if completion.wanted("sessiond"):
            completion.answer(app, "sessiond", given, lambda _name, _typed: None)
        elif not shells.asked("sessiond", given):
            program.follow(app, "sessiond", given or ["--help"])

    program.run_plain("sessiond", follow, debug=given[:1] == ["--debug"])
