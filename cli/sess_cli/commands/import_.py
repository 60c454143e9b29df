"""`sess import`: index a file that lies anywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli.options import AsJson


def import_(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE|-|URL...", help="Files, standard input, or web addresses."),
    ],
    *,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="The agent that wrote it, if unclear."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Index a file that lies anywhere.

    For example an export, or a colleague's transcript. The content tells which agent wrote it. A
    file on this machine is followed while it grows; what comes from standard input or from the web
    is saved first. Only an address that you give is ever contacted: its host is named before, and
    256 MiB are the limit.
    """
    import subprocess

    from sess_common.program import module

    options = [*(["--agent", agent] if agent else []), *(["--json"] if as_json else [])]
    child = [*module("sessiond.service.importing"), *options, "--", *files]
    raise typer.Exit(subprocess.run(child, check=False).returncode)
