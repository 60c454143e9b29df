"""`sess export md`: one session as Markdown."""

from __future__ import annotations

from typing import Annotated

import typer

from sess_cli.commands.export.shared import (
    Force,
    Gist,
    NoRedact,
    Open,
    Output,
    Redact,
    RedactionReport,
    Repo,
    Yes,
)
from sess_cli.options import NoSync, SessionId, Utc


def register(group: typer.Typer) -> None:
    group.command("md")(md)


def md(
    session: SessionId,
    *,
    output: Output = None,
    full: Annotated[
        bool, typer.Option("--full", help="Do not shorten long input and output.")
    ] = False,
    repo: Repo = None,
    gist: Gist = False,
    yes: Yes = False,
    no_redact: NoRedact = False,
    redact: Redact = None,
    redaction_report: RedactionReport = False,
    force: Force = False,
    open_it: Open = False,
    utc: Utc = False,
    no_sync: NoSync = False,
) -> None:
    """Export a session as Markdown, with tool output folded."""
    from sess_cli.commands.export import shared  # noqa: PLC0415 - not needed for --help
    from sess_cli.export import files, markdown, repositories  # noqa: PLC0415

    shared.check_output(output, force=force)
    shared.confirm_upload(gist=gist, masked=not no_redact, yes=yes)
    redactor = shared.masking(off=no_redact, patterns=redact, report=redaction_report)
    with shared.opened(session, redactor, sync=not no_sync) as story:
        repository = repositories.of(story, repo)
        if output == "-":
            markdown.write(
                story, shared.standard_output(), full=full, utc=utc, repository=repository
            )
            shared.report_masked(redactor)
            return
        path = output or shared.default_name(story, "md")
        with files.new_file(path) as out:
            markdown.write(story, out, full=full, utc=utc, repository=repository)
        shared.report(path, redactor)
    shared.publish(path, gist=gist, open_it=open_it)
