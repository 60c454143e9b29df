"""The `sess` command: wiring only. Each verb is one file in `commands/`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sess_cli.commands import demo, doctor, list_, restore, search, show, sql
from sess_schema import __version__, program
from sess_schema.program import say

VERBS = (search, list_, show, restore, sql, doctor, demo)

app = typer.Typer(
    name="sess",
    epilog=program.EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in VERBS:
    verb.register(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"sess {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Search, list and show what coding agents did on this machine."""
    if context.invoked_subcommand is None:
        list_.show_list()
        if sys.stdout.isatty():
            say("\nhint: `sess search WORDS` finds, `sess show ID` reads, `sess --help` lists all")


def run() -> None:
    program.run(app, "sess")
