"""`sessiond sync`: index new data once."""

from __future__ import annotations

from typing import Annotated

import typer

from sessiond.commands.options import AsJson


def register(app: typer.Typer) -> None:
    app.command("sync")(sync)


def sync(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|DIR|-]...",
            help="Files with any name, directories, or standard input (default: all places).",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing unless it fails.")
    ] = False,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="The agent that wrote the files."),
    ] = None,
) -> None:
    """Index new data once, then exit.

    A file that is named is followed from then on, wherever it is. While the daemon runs, it reads
    what is named.
    """
    from sess_schema import paths as places  # noqa: PLC0415
    from sess_schema.errors import SessError  # noqa: PLC0415
    from sessiond.service import pass_report  # noqa: PLC0415

    if agent is not None and not paths:
        raise SessError("--agent needs a file", hint="`sessiond sync --agent NAME FILE`")
    if not paths and not as_json and pass_report.tell_if_unchanged(places.home(), quiet=quiet):
        return
    from sessiond.service import named_files  # noqa: PLC0415 - loads every agent

    code = named_files.sync(paths or [], agent=agent, as_json=as_json, quiet=quiet)
    raise typer.Exit(code)
