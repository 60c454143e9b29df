"""`sess export json`: everything the index has about a session."""

from __future__ import annotations

import sys

import typer

from sess_cli.commands.export.shared import NoRedact, Output
from sess_cli.options import NoSync, SessionId


def register(group: typer.Typer) -> None:
    group.command("json")(json_)


def json_(
    session: SessionId,
    *,
    output: Output = None,
    no_redact: NoRedact = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as JSON: events, records and subagents."""
    from sess_cli.commands.export import shared  # noqa: PLC0415 - not needed for --help
    from sess_cli.export import files, lossless  # noqa: PLC0415

    with shared.opened(session, sync=not no_sync, redact=not no_redact) as (story, redactor):
        if output == "-":
            lossless.write(story, sys.stdout.buffer)
            shared.report_masked(redactor)
            return
        path = output or shared.default_name(story, "json")
        with files.new_file(path) as out:
            lossless.write(story, out)
        shared.report(path, redactor)
