"""The `sessiond` command: wiring only; each verb has its own file."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_schema import __version__, program
from sessiond.commands import (
    agents,
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

app = typer.Typer(
    help="Index coding-agent transcripts as they are written.",
    epilog=program.EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
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
) -> None:
    """Index coding-agent transcripts as they are written."""


for verb in (
    *(start, stop, status, sync, agents, install, logs, reprice, repair, salvage),
    restore_backup,
):
    verb.register(app)


def run() -> None:
    program.run(app, "sessiond")
